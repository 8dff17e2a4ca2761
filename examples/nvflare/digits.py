"""Partition of scikit-learn's handwritten digits among sites, with an auxiliary set."""

import json
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

AUXILIARY = 497
"""Number of images that no site holds: the attacker's auxiliary data."""

ALPHA = 0.5
"""Concentration of the labels' Dirichlet distribution; smaller values give more skew."""


def write_partition(folder: Path, sites: list[str], rounds: int) -> None:
    """Write `SITE.npz` for each site, `auxiliary.npz`, and the ground truth `truth.json`."""
    rng = np.random.default_rng(0)
    digits = load_digits()
    inputs = (digits.images[:, None] / 16 - 0.305).astype(np.float32) / np.float32(0.376)
    labels = digits.target.astype(np.int64)
    order = rng.permutation(len(labels))
    site_rows, auxiliary_rows = order[AUXILIARY:], order[:AUXILIARY]
    shares = rng.dirichlet(np.full(len(sites), ALPHA), size=10)  # (classes, sites)
    owner = np.array([rng.choice(len(sites), p=shares[labels[index]]) for index in site_rows])
    folder.mkdir(parents=True, exist_ok=True)
    counts = []
    for number, site in enumerate(sites):
        rows = site_rows[owner == number]
        np.savez(folder / f"{site}.npz", inputs=inputs[rows], labels=labels[rows])
        of_site = np.bincount(labels[rows], minlength=10).tolist()
        counts += [
            {"round": number, "party": f"client/{site}", "labels": of_site}
            for number in range(rounds)
        ]
    np.savez(folder / "auxiliary.npz", x=inputs[auxiliary_rows], y=labels[auxiliary_rows])
    (folder / "truth.json").write_text(json.dumps({"counts": counts, "accuracy": []}))
