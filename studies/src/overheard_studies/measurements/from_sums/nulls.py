"""Federations whose sums tell nothing of single clients, and how many audits say "leaks"."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, final

import numpy as np
from jaxtyping import Bool

from overheard.auditing.run import audit
from overheard.data.splits.dirichlet import Dirichlet
from overheard.data.splits.iid import Iid
from overheard.disk.folders import remove_folder
from overheard.disk.writing import write_text
from overheard.planning.cohorts.schedules import propose_schedules
from overheard.plans.plan import Plan
from overheard.statistics.estimate import Estimate
from overheard_studies.conclusion import Conclusion
from overheard_studies.measurements.from_sums.federations import CLIENTS, Cell
from overheard_studies.measurements.from_sums.scheduled import run_schedule
from overheard_studies.runs import StudyRuns
from overheard_studies.study import Measurement, MeasurementRun, Study
from overheard_studies.values import ReproducedValue, Values, make_value

SEEDS = tuple(range(20))

ROUNDS = 20

TREND = 2.0
"""Log odds of taking part that the client with the strongest trend gains or loses over half of
the rounds: from .12 to .88."""

Kind = Literal["alike", "trend", "redrawn"]

MOST_LEAKS = 4
"""Most audits of 60 that may say "leaks", as the issue of these measurements set it."""


@final
@dataclass(frozen=True, slots=True)
class Null:
    """A kind of federation in which nothing can be learnt of single clients.

    Args:
        kind: "alike": clients draw from one distribution, and cohorts are random; "redrawn":
            clients differ, but the server is told random cohorts in place of the true ones;
            "trend": clients differ, and some take part more often early and others late, but
            the server takes each client for another one.
        cell: the federation.
        words: what is null, for the page.

    """

    kind: Kind
    cell: Cell
    words: str


NULLS = (
    Null("alike", Cell("mnist", 0.1, Iid(), ROUNDS), "clients are alike"),
    Null(
        "redrawn",
        Cell("mnist", 0.1, Dirichlet(0.5), ROUNDS),
        "clients differ, and the cohorts that the server is told were drawn anew",
    ),
    Null(
        "trend",
        Cell("mnist", 0.1, Dirichlet(0.5), ROUNDS),
        "clients differ, some take part more often early and others late, and the server takes "
        "each client for another one",
    ),
)


def trending_cohorts(seed: int) -> Bool[np.ndarray, "rounds clients"]:
    """Return cohorts of clients whose odds of taking part rise or fall over the rounds."""
    draws = np.random.default_rng([seed, 1])
    slopes = draws.permutation(np.linspace(-TREND, TREND, CLIENTS))
    odds = np.linspace(-1, 1, ROUNDS)[:, None] * slopes
    took_part: Bool[np.ndarray, "rounds clients"]
    took_part = draws.random((ROUNDS, CLIENTS)) < 1 / (1 + np.exp(-odds))
    # A cohort of one client would be no secret.
    took_part[took_part.sum(axis=1) < 2, :2] = True
    return took_part


def tell_other_cohorts(
    recording: Path, cohorts: Bool[np.ndarray, "rounds clients"], inside: Path
) -> None:
    """Name other clients in place of those of each sum, in the files of a recording.

    The ground truth names the same clients, each with its own labels. Single updates, which
    nobody reads, are left out of the lists of messages: they contradict the sums.
    """
    told = [[f"client/{place}" for place in np.flatnonzero(row)] for row in cohorts]
    for path in sorted(recording.glob("transcript/rounds/*/messages.jsonl")):
        kept = []
        for message in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            if message["body"]["kind"] == "update":
                continue
            if message["body"]["kind"] == "aggregate":
                message["body"]["cohort"] = told[message["round"]]
            kept.append(json.dumps(message, separators=(",", ":")) + "\n")
        write_text(path, "".join(kept), inside=inside)
    path = recording / "truth.json"
    truth = json.loads(path.read_text(encoding="utf-8"))
    labels = {one["party"]: one["labels"] for one in truth["counts"]}
    truth["counts"] = [
        {"round": number, "party": party, "labels": labels[party]}
        for number, cohort in enumerate(told)
        for party in cohort
    ]
    write_text(path, json.dumps(truth), inside=inside)


def _forget_simulation(recording: Path, inside: Path) -> None:
    """Leave out of which data a run was made: no plan has cohorts that follow a schedule."""
    path = recording / "transcript" / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    write_text(path, json.dumps(manifest | {"data": ""}), inside=inside)


def _verdict(null: Null, plan: Plan, seed: int, run: MeasurementRun) -> str:
    recording, folder = run.folder / "recording", run.folder / "running"
    took_part = trending_cohorts(seed) if null.kind == "trend" else None
    run_schedule(plan, seed, recording, run, took_part)
    _forget_simulation(recording, run.folder)
    if null.kind == "redrawn":
        anew = propose_schedules(CLIENTS, CLIENTS // 2, ROUNDS, seed)[0].took_part
        tell_other_cohorts(recording, anew, run.folder)
    if took_part is not None:
        order = np.random.default_rng([seed, 2]).permutation(CLIENTS)
        tell_other_cohorts(recording, took_part[:, order], run.folder)
    remove_folder(folder, inside=run.folder)
    made = audit(plan, folder, resources=run.resources, recording=recording)
    remove_folder(folder, inside=run.folder)
    remove_folder(recording, inside=run.folder)
    (verdict,) = (
        one.judgement.verdict for arm in made.arm_results for one in arm.threat_results
    )
    return verdict


def _measure(null: Null, run: MeasurementRun) -> Iterator[ReproducedValue]:
    """Yield how many audits say "leaks"."""
    seeds = SEEDS[:1] if run.quick else SEEDS
    verdicts = [_verdict(null, null.cell.plan(seed), seed, run) for seed in seeds]
    words = f"{null.cell.words(len(seeds))}; {null.words}: audits of {len(verdicts)}"
    for verdict in sorted({"leaks", *verdicts}):
        name = f"{null.kind}_{verdict.replace(' ', '_')}"
        count = sum(one == verdict for one in verdicts)
        yield make_value(name, f'{words} that say "{verdict}"', float(count))


def _leaks(runs: StudyRuns, values: Values) -> Mapping[str, Estimate | None]:
    counts = {one.name: one.value for one in values}
    each = [counts.get(f"{null.kind}_leaks") for null in NULLS]
    if any(one is None for one in each):
        return {"leaks": None}
    total = float(sum(one or 0 for one in each))
    return {"leaks": Estimate(total, total, total)}


def sums_nulls() -> Study:
    """Return how often sums that tell nothing are said to leak; a core's quarter of an hour."""
    return Study(
        "sums_nulls",
        'Sums that tell nothing of single clients, and how many audits say "leaks"',
        "It repeats no paper. Each run has 20 clients, of which about half take part in each "
        "of 20 rounds. The recordings do not say of which data they were made, because no plan "
        "has cohorts that follow a schedule.",
        measurements=tuple(Measurement(one.kind, partial(_measure, one)) for one in NULLS),
        conclusions=(
            Conclusion(
                "leaks",
                f'Of 60 audits in which nothing can leak, at most {MOST_LEAKS} say "leaks".',
                _leaks,
                "below",
                MOST_LEAKS + 0.5,
            ),
        ),
    )
