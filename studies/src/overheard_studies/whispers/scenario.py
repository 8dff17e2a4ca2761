"""The scenarios: a data set, and the split of its labels among clients."""

from dataclasses import dataclass
from typing import final

from overheard.core.split import Split
from overheard.data.splits.dirichlet import Dirichlet
from overheard.data.splits.iid import Iid
from overheard.data.splits.quantity import Quantity
from overheard_studies.whispers.benchmark import WhispersBenchmark


@final
@dataclass(frozen=True, slots=True)
class WhispersScenario:
    """A data set and a split for both real and virtual clients.

    Args:
        key: name in the keys of values, in folders and in the published tables.
        name: name in words.
        benchmark: data set.
        split: split of the labels.

    """

    key: str
    name: str
    benchmark: WhispersBenchmark
    split: Split


def iid_scenario(benchmark: WhispersBenchmark, key: str | None = None) -> WhispersScenario:
    """Make a scenario in which every client holds all labels about equally often."""
    return WhispersScenario(key or benchmark.key, f"{benchmark.name} IID", benchmark, Iid())


def few_labels_scenario(benchmark: WhispersBenchmark) -> WhispersScenario:
    """Make a scenario in which every client holds a few labels."""
    return WhispersScenario(
        benchmark.key,
        f"{benchmark.name} with {benchmark.labels} labels a client",
        benchmark,
        Quantity(benchmark.labels),
    )


def dirichlet_scenarios(benchmark: WhispersBenchmark) -> tuple[WhispersScenario, ...]:
    """Make one scenario with Dirichlet shares for each of the paper's alphas."""
    return tuple(
        WhispersScenario(
            f"{benchmark.key}_alpha_{alpha:g}",
            f"{benchmark.name} Dirichlet({alpha:g})",
            benchmark,
            Dirichlet(alpha),
        )
        for alpha in benchmark.alphas
    )
