"""Deals scikit-learn's handwritten digits to sites, and keeps some that are nobody's."""

import json
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

AUXILIARY = 497
"""Images that no site holds: the attacker's own."""

ALPHA = 0.5
"""Of the Dirichlet distribution of the labels; the smaller, the less alike are the sites."""


def deal(folder: Path, sites: list[str], rounds: int) -> None:
    """Write `SITE.npz` for each site, `auxiliary.npz`, and the truth to score attacks by."""
    rng = np.random.default_rng(0)
    digits = load_digits()
    inputs = (digits.images[:, None] / 16 - 0.305).astype(np.float32) / np.float32(0.376)
    labels = digits.target.astype(np.int64)
    order = rng.permutation(len(labels))
    held, kept = order[AUXILIARY:], order[:AUXILIARY]
    shares = rng.dirichlet(np.full(len(sites), ALPHA), size=10)  # (classes, sites)
    owner = np.array([rng.choice(len(sites), p=shares[labels[index]]) for index in held])
    folder.mkdir(parents=True, exist_ok=True)
    counts = []
    for number, site in enumerate(sites):
        own = held[owner == number]
        np.savez(folder / f"{site}.npz", inputs=inputs[own], labels=labels[own])
        of_site = np.bincount(labels[own], minlength=10).tolist()
        counts += [
            {"round": number, "party": f"client/{site}", "labels": of_site}
            for number in range(rounds)
        ]
    np.savez(folder / "auxiliary.npz", x=inputs[kept], y=labels[kept])
    (folder / "truth.json").write_text(json.dumps({"counts": counts, "accuracy": []}))
