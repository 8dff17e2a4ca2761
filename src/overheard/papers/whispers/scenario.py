"""Whose data are attacked: a data set, and how its labels are shared out among clients."""

from dataclasses import dataclass
from typing import final

from overheard.core.split import Split
from overheard.data.splits.dirichlet import Dirichlet
from overheard.data.splits.iid import Iid
from overheard.data.splits.quantity import Quantity
from overheard.papers.whispers.benchmark import WhispersBenchmark


@final
@dataclass(frozen=True, slots=True)
class Scenario:
    """A data set and a split, by which both real and virtual clients are made.

    Args:
        key: its name in figures, folders and what was published.
        name: in words.
        benchmark: the data set.
        split: how labels are shared out.

    """

    key: str
    name: str
    benchmark: WhispersBenchmark
    split: Split


def alike(benchmark: WhispersBenchmark, key: str | None = None) -> Scenario:
    """Every client holds all labels about equally often."""
    return Scenario(key or benchmark.key, f"{benchmark.name} IID", benchmark, Iid())


def few_labels(benchmark: WhispersBenchmark) -> Scenario:
    """Every client holds a few labels."""
    return Scenario(
        benchmark.key,
        f"{benchmark.name} with {benchmark.labels} labels a client",
        benchmark,
        Quantity(benchmark.labels),
    )


def uneven(benchmark: WhispersBenchmark) -> tuple[Scenario, ...]:
    """Dirichlet shares, for each of the paper's alphas."""
    return tuple(
        Scenario(
            f"{benchmark.key}_alpha_{alpha:g}",
            f"{benchmark.name} Dirichlet({alpha:g})",
            benchmark,
            Dirichlet(alpha),
        )
        for alpha in benchmark.alphas
    )
