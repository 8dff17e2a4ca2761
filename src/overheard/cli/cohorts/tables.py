"""Schedules of cohorts as tables in a terminal."""

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from overheard.cli.terminal import escaped_text
from overheard.planning.cohorts.design import CohortDesign, ProposedSchedule
from overheard.planning.cohorts.predicted_error import PredictedError

TOGETHER = (
    "Clients that always take part together are hidden among each other only: the server "
    "learns each group as a whole, and who is in it. `sum_shares` is refused where no client "
    "is ever apart from the same others."
)


def print_design(design: CohortDesign, console: Console) -> None:
    """Print schedules side by side, and what the predictions assume."""
    rounds = f"{design.rounds:,} round{'' if design.rounds == 1 else 's'}"
    console.print(
        escaped_text(
            f"{design.clients:,} clients, {design.cohort:,} wanted in each of {rounds}. What "
            "the sums reveal, and what the schedule costs:"
        )
    )
    reveals = _table(
        "schedule", "cohort", "resolution", "group", "takes part", "all by", "wait"
    )
    for one in design.schedules:
        reveals.add_row(*map(escaped_text, _first_row(one)))
    console.print(reveals)
    console.print(
        "Predicted error of label shares, as a share of that of a guess, by rounds, with the "
        "range in which 90 % of federations are expected:"
    )
    after = [f"{one.rounds:,}" for one in design.schedules[0].predicted]
    predicted = _table("schedule", *after)
    for one in design.schedules:
        cells = map(_predicted, one.predicted)
        predicted.add_row(*map(escaped_text, (one.name, *cells)))
    console.print(predicted)
    for one in design.schedules:
        console.print(escaped_text(f"{one.name}: {one.description}"))
    for sentence in (TOGETHER, *design.assumed):
        console.print(escaped_text(sentence))


def _predicted(made: PredictedError) -> str:
    low, high = made.low / made.guess, made.high / made.guess
    return f"{made.of_guess:.2f}\n{low:.2f} to {high:.2f}"


def _table(first: str, *others: str) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column(first)
    for header in others:
        table.add_column(header, justify="right")
    return table


def _first_row(one: ProposedSchedule) -> tuple[str, ...]:
    cost = one.cost
    return (
        one.name,
        _range(cost.smallest_cohort, cost.largest_cohort),
        f"{one.resolution:.2f} ({one.largest_resolution:.2f})",
        _range(one.group_at_least, one.group_at_most),
        _range(cost.least_rounds, cost.most_rounds),
        "never" if cost.all_seen_after is None else f"{cost.all_seen_after:,}",
        f"{cost.longest_wait:,}",
    )


def _range(low: int, high: int) -> str:
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
