"""Audits made by hand: a small one with known scores, and a rich one for layouts."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from overheard.auditing.threat_results import with_verdicts
from overheard.core.parties import COHORT, SERVER, Party, client
from overheard.core.scorer import Score
from overheard.findings.audit import Audit
from overheard.findings.finding import ArmDefense, ArmRun, Cell, ClaimRow, Finding, Refusal

HOSTILE = "<script>alert(1)</script>"

NO_DEFENSE: tuple[ArmDefense, ...] = ()

FITS_BEST = (1.0, *np.linspace(-1.0, 0.0, 199).tolist())
"""Fits of a claim with its truth and 199 others, all of which it fits worse: p = 1 / 200."""

FITS_LIKE_ANY = (0.0, *np.linspace(-1.0, 1.0, 199).tolist())
"""Fits of a claim that fits half of the others better: p is about a half."""

NOISE = ArmDefense("LocalDP(clip=1.0, noise_multiplier=0.5)", "client", "the client", "none")


def shares_finding(
    arm: str,
    target: Party,
    true: Sequence[float],
    claimed: Sequence[float],
    *,
    seed: int = 0,
    attack: str = "decaf",
    rounds: tuple[int, ...] = (0, 1),
    observers: tuple[Party, ...] = (SERVER,),
    settings: str = "Decaf()",
    part: str = "decaf",
    null: tuple[float, float, float] | None = None,
    reach: float | None = None,
    size: tuple[float, float] | None = None,
    fits: Sequence[float] = (),
) -> Finding:
    """Make a finding on label shares with l1 and linf, and the uniform guess.

    Args:
        reach: distance of the interval's ends from each claimed share; None = no intervals.
        size: scores of the claimed size; None = no scores.
        fits: fits with the true partition and others drawn anew; () = none.

    """
    uniform = [1 / len(true)] * len(true)
    support = [float(share > 0) / sum(share > 0 for share in true) for share in true]
    scores = [
        Score(
            name,
            _error(name, claimed, true),
            "lower",
            {"uniform": _error(name, uniform, true)},
            {"uniform on the true support": _error(name, support, true)},
        )
        for name in ("l1", "linf")
    ]
    if null is not None:
        named = zip(("null_precision", "null_recall", "null_exact"), null, strict=True)
        scores += [Score(name, value, "higher", {}, {}) for name, value in named]
    low = high = None
    if reach is not None:
        low = tuple(max(0.0, share - reach) for share in claimed)
        high = tuple(min(1.0, share + reach) for share in claimed)
        ends = list(zip(low, true, high, strict=True))
        coverage = sum(below <= share <= above for below, share, above in ends) / len(ends)
        width = sum(above - below for below, _, above in ends) / len(ends)
        scores += [
            Score("coverage", coverage, "higher", {}, {}),
            Score("width", width, "lower", {}, {}),
        ]
    if size is not None:
        names = (("size_factor", "lower"), ("size_coverage", "higher"))
        scores += [Score(n, v, b, {}, {}) for (n, b), v in zip(names, size, strict=True)]
    cell = Cell(arm, seed, observers, attack, settings, "label_shares", rounds, part=part)
    return Finding(
        cell,
        (target,),
        ClaimRow(tuple(claimed), low, high),
        ClaimRow(tuple(true)),
        tuple(scores),
        fits=tuple(fits),
    )


def two_findings(
    arm: str, true: Sequence[float], claimed: Sequence[float], **more: Any
) -> tuple[Finding, ...]:
    """Make the same finding on each of two clients."""
    return tuple(shares_finding(arm, client(k), true, claimed, **more) for k in (0, 1))


def _error(name: str, claimed: Sequence[float], true: Sequence[float]) -> float:
    gaps = [abs(left - right) for left, right in zip(claimed, true, strict=True)]
    return sum(gaps) if name == "l1" else max(gaps)


@pytest.fixture
def small() -> Audit:
    """Two arms, one seed, two clients, two classes; noise hides everything.

    Without defenses: client/0 has 100 % / 0 %, claimed 90 / 10, so linf = 0.10, l1 = 0.20;
    client/1 has 20 / 80, claimed 22 / 78, so linf = 0.02, l1 = 0.04. Means: linf 0.06, l1
    0.12, which is 6.0 % misplaced. Guessing 50 / 50: linf 0.5 and 0.3, mean 0.40; 40 %
    misplaced. With noise both claims are 50 / 50, which is the guess itself: gain 0.
    Claims without noise fit no other partition as well; those with noise fit half of them.
    """
    true = {client(0): (1.0, 0.0), client(1): (0.2, 0.8)}
    audit = Audit(
        title="Two clients",
        subject="2 clients, 2 classes",
        class_names=("cat", "dog"),
        arms=(
            ArmRun("none", 0, NO_DEFENSE, {0: 0.5, 1: 0.91}, missing=0, answers=4),
            ArmRun("noise", 0, (NOISE,), {0: 0.5, 1: 0.89}, missing=0, answers=4),
        ),
        findings=(
            shares_finding("none", client(0), true[client(0)], (0.9, 0.1), fits=FITS_BEST),
            shares_finding("none", client(1), true[client(1)], (0.22, 0.78), fits=FITS_BEST),
            shares_finding("noise", client(0), true[client(0)], (0.5, 0.5), fits=FITS_LIKE_ANY),
            shares_finding("noise", client(1), true[client(1)], (0.5, 0.5), fits=FITS_LIKE_ANY),
        ),
        refusals=(),
        plan='title = "Two clients"\n',
        versions={"overheard": "0.1.0"},
    )
    return with_verdicts(audit)


@pytest.fixture(scope="session")
def rich() -> Audit:
    """Four arms, two seeds, 26 clients, ten classes, hostile names, and an arm of refusals."""
    random = np.random.default_rng(7)
    names = (
        "zero", HOSTILE, "two $x$ and $", "three with a name that does not end before long",
        "شبكة", "five\u202egpj", "=cmd|'/c calc'!A1", "seven & eight", "八", "nine\n\x1b[31m",
    )  # fmt: skip
    defenses: dict[str, tuple[ArmDefense, ...]] = {
        "none": (),
        "local DP": (
            ArmDefense(
                "LocalDP(clip=1.0, noise_multiplier=0.5)", "client", "the client itself",
                "(ε = 41.2, δ = 1e-05) per user over 3 rounds: Gaussian mechanism, clip 1.0, "
                "noise multiplier 0.5, every client in every round, RDP accountant",
            ),
        ),
        "secure aggregation": (
            ArmDefense("SecureAggregation()", "protocol", "the server with n − 2 clients",
                          "no formal promise"),
        ),
        f"shuffled {HOSTILE}": (
            ArmDefense("ShuffledLabels(note='<img src=x onerror=alert(2)>')", "client",
                          "the client", "no formal promise"),
        ),
    }  # fmt: skip
    noise = {"none": 0.03, "local DP": 0.25, f"shuffled {HOSTILE}": 4.0}
    quality = {"decaf": 1.0, "bias_inversion": 0.6, "mean_softmax": 2.5}
    arms, findings, refusals = [], [], []
    for arm, records in defenses.items():
        for seed in (0, 1):
            cost = 0.021 if arm == "local DP" else 0.0
            accuracy = {n: 0.93 - 0.7 * 0.5**n - cost * n / 3 for n in range(4)}
            arms.append(ArmRun(arm, seed, records, accuracy, missing=3, answers=127))
            for number in range(26):
                true = random.dirichlet([0.4] * 10)
                true = np.where(true < 0.01, 0, true)
                true /= true.sum()
                for attack, factor in quality.items():
                    settings = f"{attack.title().replace('_', '')}(note='{HOSTILE}')"
                    cells = [tuple(range(3)), *((n,) for n in range(3))]
                    for rounds in cells:
                        if arm not in noise:
                            cell = Cell(
                                arm, seed, (SERVER,), attack, settings, "label_shares", rounds
                            )
                            refusals.append(
                                Refusal(cell, client(number), ("an update of the target",))
                            )
                            continue
                        scale = noise[arm] * factor * (1 if len(rounds) > 1 else 1.8)
                        weights = np.clip(true + scale * 0.3 * random.standard_normal(10), 0, 9)
                        claimed = (weights + 1e-6) / (weights + 1e-6).sum()
                        findings.append(
                            shares_finding(
                                arm,
                                client(number),
                                true.tolist(),
                                claimed.tolist(),
                                seed=seed,
                                attack=attack,
                                rounds=rounds,
                                settings=settings,
                                part=attack,
                                null=(0.9, 0.7, float(number % 3 == 0))
                                if attack == "decaf"
                                else None,
                                reach=0.04 if attack == "bias_inversion" else None,
                                size=(0.2 + 0.1 * (number % 4), float(number % 9 > 0))
                                if attack == "bias_inversion"
                                else None,
                            )
                        )
            findings.append(
                shares_finding(
                    arm,
                    COHORT,
                    [0.2, 0.0] * 5,
                    [0.18, 0.02] * 5,
                    seed=seed,
                    attack="bias_inversion, about the other clients",
                    rounds=tuple(range(3)),
                    settings="BiasInversion()",
                    observers=(client(0),),
                )
            )
            findings.append(
                shares_finding(
                    arm,
                    COHORT,
                    [0.16, 0.04] * 5,
                    [0.15, 0.05] * 4 + [0.13, 0.07],
                    seed=seed,
                    attack="bias_inversion",
                    rounds=tuple(range(3)),
                    settings="BiasInversion()",
                )
            )
    audit = Audit(
        title=f"What 26 clinics give away {HOSTILE}",
        subject="26 clients with 80 to 120 examples each of digits, shared out by dirichlet "
        "(alpha=0.4); model mlp; 3 rounds of FedAvg, 2 local epochs of sgd at rate 0.1 with "
        "batches of 16",
        class_names=names,
        arms=tuple(arms),
        findings=tuple(findings),
        refusals=tuple(refusals),
        plan='title = "26 clinics"\n# <script>alert(3)</script>\nseeds = [0, 1]\n',
        versions={"overheard": "0.1.0", "torch": "2.13.0+cpu", "python": "3.11.2"},
    )
    return with_verdicts(audit)
