"""Label shares from sums with wrong cohorts, changing clients, and as a client reads them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import torch

from overheard.auditing.attack_runner import with_means
from overheard.core.errors import NeedsError
from overheard.core.messages import Aggregate
from overheard.core.parties import SERVER, Party, client
from overheard.core.transcript import Transcript
from overheard.core.view import View
from overheard.data.splits.dirichlet import Dirichlet
from overheard.disk.folders import remove_folder
from overheard.federation.federation import Federation
from overheard.plans.plan import Plan
from overheard.statistics.run_means import estimate_mean
from overheard_studies.measurements.from_sums.federations import ALPHAS, EXAMPLES, RATES, Cell
from overheard_studies.measurements.from_sums.scheduled import (
    Claimed,
    claim_shares,
    read_knowledge,
    run_schedule,
)
from overheard_studies.study import Measurement, MeasurementRun, Study
from overheard_studies.values import ReproducedValue, make_value

SEEDS = (1, 2, 3)

ONE_SEED = SEEDS[:1]
"""Of the measurements that would otherwise take the study over six core minutes."""

FIVE_SEEDS = (*SEEDS, 4, 5)
"""Of clients whose labels change; the model of drifting shares was chosen with 900 and 901."""

NEW_RECORDS = 0.2
"""Share of the records of a client that are drawn anew before each round."""

WRONG_ROUNDS = 0.1
"""Share of the rounds whose cohorts are told wrongly."""

LISTENER = client(0)


def change_cohorts(
    transcript: Transcript, seed: int, *, is_exchange: bool = False
) -> Transcript:
    """Return the transcript with a tenth of the cohorts told wrongly.

    Args:
        transcript: of a run with sums.
        seed: of the draws.
        is_exchange: whether these rounds exchange their cohorts in a ring; otherwise as many
            clients as took part are drawn anew.

    """
    draws = np.random.default_rng([seed, 3])
    cohorts = {
        one.round: one.body.cohort
        for one in transcript.messages
        if isinstance(one.body, Aggregate)
    }
    count = max(2, round(WRONG_ROUNDS * len(cohorts)))
    chosen = draws.choice(sorted(cohorts), count, replace=False).tolist()
    clients = sorted(frozenset().union(*cohorts.values()))
    told = dict[int, frozenset[Party]]()
    for number, following in zip(chosen, [*chosen[1:], chosen[0]], strict=True):
        anew = draws.choice(clients, len(cohorts[number]), replace=False).tolist()
        told[number] = cohorts[following] if is_exchange else frozenset(anew)
    return Transcript(
        tuple(
            replace(one, body=replace(one.body, cohort=told[one.round]))
            if isinstance(one.body, Aggregate) and one.round in told
            else one
            for one in transcript.messages
        )
    )


def renew_records(federation: Federation, seed: int) -> Federation:
    """Return the federation whose clients replace a fifth of their records before each round.

    Labels of new records follow the label shares that the client had in the first round. The
    records are drawn from all of the pool, so that one may come back.
    """
    draws = np.random.default_rng([seed, 4])
    labels = federation.pool.labels.numpy()
    by_label = [np.flatnonzero(labels == one) for one in range(federation.task.classes)]
    rounds = [federation.rows[0]]
    while len(rounds) < federation.rounds:
        rounds.append(
            [
                _renew(held.numpy(), labels[first.numpy()], by_label, draws)
                for held, first in zip(rounds[-1], federation.rows[0], strict=True)
            ]
        )
    return replace(federation, rows=rounds)


def _renew(
    held: np.ndarray,
    labels: np.ndarray,
    by_label: Sequence[np.ndarray],
    draws: np.random.Generator,
) -> torch.Tensor:
    """Return rows of which a fifth are new, with labels drawn from these."""
    new = round(NEW_RECORDS * len(held))
    kept = draws.choice(held, len(held) - new, replace=False)
    wanted = draws.choice(labels, new)
    free = [np.setdiff1d(rows, kept) for rows in by_label]
    drawn = [
        draws.choice(free[label], int((wanted == label).sum()), replace=False)
        for label in np.unique(wanted)
    ]
    return torch.from_numpy(np.concatenate([kept, *drawn]))


def change_labels(federation: Federation, *, is_sudden: bool) -> Federation:
    """Return the federation whose clients end with the records that the next one has at first.

    Args:
        federation: whose clients would hold the same records in all rounds.
        is_sudden: whether they change all records before the round in the middle; otherwise
            they replace as many before each round.

    """
    first = [held.numpy() for held in federation.rows[0]]
    rounds = list[list[torch.Tensor]]()
    for number in range(federation.rounds):
        part = number / max(1, federation.rounds - 1)
        part = float(part >= 0.5) if is_sudden else part
        rounds.append([])
        for held, following in zip(first, [*first[1:], first[0]], strict=True):
            new = round(part * min(len(held), len(following)))
            rows = np.concatenate([held[new:], following[:new]])
            rounds[-1].append(torch.from_numpy(rows))
    return replace(federation, rows=rounds)


def _summarize(key: str, words: str, made: Sequence[Claimed]) -> Iterator[ReproducedValue]:
    """Yield error, coverage and doubts of runs."""
    rows = {
        "ratio": ("mean L1, of that of the guess", [one.error / one.guess for one in made]),
        "coverage": ("share of 90 % intervals that hold", [one.coverage for one in made]),
    }
    for end, (what, each) in rows.items():
        mean = estimate_mean(np.array(each), np.arange(len(each)))
        yield make_value(f"{key}_{end}", f"{words}: {what}", mean)
    least = min(one.coverage for one in made)
    yield make_value(f"{key}_least_coverage", f"{words}: least coverage of a run", least)
    doubted = float(sum(one.is_doubted for one in made))
    yield make_value(f"{key}_doubted", f"{words}: runs that doubt intervals", doubted)


def _measure_told(key: str, cell: Cell, run: MeasurementRun) -> Iterator[ReproducedValue]:
    """Yield what is left where the cohorts of a tenth of the rounds are told wrongly."""
    seeds, cell = _size(SEEDS, cell, run)
    made = {"replaced": list[Claimed](), "exchanged": list[Claimed]()}
    for seed in seeds:
        plan, folder = cell.plan(seed), run.folder / "running"
        transcript, truth = run_schedule(plan, seed, folder, run)
        knowledge = read_knowledge(plan, seed, run)
        for kind, claims in made.items():
            told = change_cohorts(transcript, seed, is_exchange=kind == "exchanged")
            view = told.seen_by(SERVER)
            claims.append(claim_shares(plan, seed, view, truth, knowledge))
        remove_folder(folder, inside=run.folder)
    words = cell.words(len(seeds))
    told_of = {
        "replaced": "a tenth of the rounds are told with clients drawn anew",
        "exchanged": "a tenth of the rounds are told with the clients of each other",
    }
    for kind, claims in made.items():
        yield from _summarize(f"{key}_{kind}", f"{words}; {told_of[kind]}", claims)


def _measure_new(key: str, cell: Cell, run: MeasurementRun) -> Iterator[ReproducedValue]:
    """Yield what is left where clients replace a fifth of their records each round."""
    seeds, cell = _size(ONE_SEED, cell, run)
    made = list[Claimed]()
    for seed in seeds:
        plan, folder = cell.plan(seed), run.folder / "running"
        change = partial(renew_records, seed=seed)
        transcript, truth = run_schedule(plan, seed, folder, run, change=change)
        knowledge = read_knowledge(plan, seed, run)
        made.append(claim_shares(plan, seed, transcript.seen_by(SERVER), truth, knowledge))
        remove_folder(folder, inside=run.folder)
    words = f"{cell.words(len(seeds))}; a fifth of the records of a client is new each round"
    yield from _summarize(f"{key}_new", words, made)


def _measure_changing(
    key: str, cell: Cell, is_sudden: bool, run: MeasurementRun
) -> Iterator[ReproducedValue]:
    """Yield what is left where the labels of all clients change."""
    seeds, cell = _size(FIVE_SEEDS, cell, run)
    change, made = partial(change_labels, is_sudden=is_sudden), list[Claimed]()
    for seed in seeds:
        plan, folder = cell.plan(seed), run.folder / "running"
        transcript, truth = run_schedule(plan, seed, folder, run, change=change)
        knowledge = read_knowledge(plan, seed, run)
        made.append(claim_shares(plan, seed, transcript.seen_by(SERVER), truth, knowledge))
        remove_folder(folder, inside=run.folder)
    when = "at once in the middle" if is_sudden else "a little before each round"
    words = f"{cell.words(len(seeds))}; all records of all clients change {when}"
    yield from _summarize(key, words, made)


def _measure_listener(cell: Cell, run: MeasurementRun) -> Iterator[ReproducedValue]:
    """Yield what a client learns of the others, with and without the cohorts announced."""
    seeds, cell = _size(ONE_SEED, cell, run)
    seed, folder = seeds[0], run.folder / "running"
    plan = cell.plan(seed)
    transcript, truth = run_schedule(plan, seed, folder, run)
    knowledge, words = read_knowledge(plan, seed, run), f"{cell.words(1)}; {LISTENER} listens"
    try:
        claim_shares(plan, seed, transcript.seen_by(LISTENER), truth, knowledge)
    except NeedsError as error:
        told = f"{words}, cohorts are hidden: refused, as {error}"
        yield make_value("listener_hidden_ratio", told, None)
    view = listen(plan, transcript)
    prior = replace(knowledge.prior, sizes=(EXAMPLES, EXAMPLES))
    suppositions = {
        "listener": (knowledge, "nothing is known of the numbers of examples"),
        "listener_sizes": (replace(knowledge, prior=prior), "all hold as many examples as it"),
    }
    for key, (known, supposed) in suppositions.items():
        claimed = claim_shares(plan, seed, view, truth, known)
        told = f"{words}, cohorts are announced, {supposed}"
        yield from _summarize(key, told, [claimed])
    remove_folder(folder, inside=run.folder)


def listen(plan: Plan, transcript: Transcript) -> View:
    """Return what the listener reads where it knows who took part in each round."""
    (threat,) = plan.threats
    knowing = threat.model_copy(
        update={"observers": (LISTENER,), "knows": (*threat.knows, "cohorts")}
    )
    seen = transcript.seen_by(LISTENER)
    return with_means(seen, plan.training.algorithm, knowing, transcript.messages)


def _size(
    seeds: tuple[int, ...], cell: Cell, run: MeasurementRun
) -> tuple[tuple[int, ...], Cell]:
    """Return the seeds and the federation that are run."""
    if run.quick:
        return ONE_SEED, replace(cell, rounds=10)
    return run.seeds or seeds, cell


CELLS = {
    f"rate_{rate:g}_alpha_{alpha:g}": Cell("mnist", rate, Dirichlet(alpha))
    for rate, alpha in product(RATES, ALPHAS)
}


CHANGING = {key: CELLS[key] for key in ("rate_0.1_alpha_0.1", "rate_0.03_alpha_0.5")}
"""The federations whose clients change: each takes five seeds."""


def sums_deviations() -> Study:
    """Return what wrong cohorts and changing clients leave, and what a client learns."""
    told = (
        Measurement(f"{key}_told", partial(_measure_told, key, cell))
        for key, cell in CELLS.items()
    )
    new = (
        Measurement(f"{key}_new", partial(_measure_new, key, cell))
        for key, cell in CELLS.items()
    )
    changing = (
        Measurement(
            f"{key}_{name}",
            partial(_measure_changing, f"{key}_{name}", cell, name == "sudden"),
        )
        for key, cell in CHANGING.items()
        for name in ("gradual", "sudden")
    )
    listener = partial(_measure_listener, CELLS["rate_0.03_alpha_0.5"])
    return Study(
        "sums_deviations",
        "Label shares from sums with wrong cohorts, new records, changing labels, and a client "
        "that listens",
        "It repeats no paper. Where records change, claims are judged against the label shares "
        "of all rounds in which a client took part.",
        measurements=(*told, *new, *changing, Measurement("listener", listener)),
    )
