"""Training on a mixture of old and new examples for some rounds after an exchange."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch

from overheard.core.defense import Defense, Moment, Run, Site
from overheard.core.examples import Examples


@final
@dataclass(frozen=True, slots=True)
class ChunkSmoothing(Defense):
    """Each client lets the examples that it gave up fade out, so that a shift comes slowly.

    In the j-th round after an exchange, j = 0 in the first, a share 1 - (j + 1) / (rounds + 1)
    of the examples trained on is drawn from the former chunk, and the rest from the present
    one: as many as before together, none of a chunk twice, anew each round. From the round j =
    `rounds` on, the present chunk alone is left.

    A jump becomes a slope of the same height: a method that looks for a sudden change sees
    little, one that gathers evidence over rounds sees it later, and the composition that is
    reached in the end is not hidden at all. Rounds spent on old examples are not spent on new
    ones, and a client must keep examples that it may have been bound to delete.

    Only one former chunk is kept. Where chunks are exchanged again before `rounds` have passed,
    what was left of the one before is dropped at once; while data drift round by round, this
    does no more than to lag behind by part of a round. Other defenses of the data ought to come
    after this one: the former chunk is mixed in as it was before any of them.

    Args:
        rounds: over how many rounds the former chunk fades out.

    """

    rounds: int = 5

    name: ClassVar[str] = "chunk_smoothing"
    source: ClassVar[str] = "ours, against the shifts of Brunner and Montuoro 2024"
    enforced_at: ClassVar[Site] = "client"
    switched_off_by: ClassVar[str] = "each client, for itself"

    def __post_init__(self) -> None:
        """Refuse to fade out over no round."""
        if self.rounds < 1:
            raise ValueError(f"a chunk fades out over 1 round or more, got {self.rounds}")

    def on_data(self, data: Examples, moment: Moment) -> Examples:
        """Draw the mixture; the moment's seed says which examples.

        Old ones are counted down to a whole number, and are no more than there are.
        """
        if moment.former is None:
            return data
        old, age = moment.former.examples, moment.round - moment.former.since
        share = max(0, self.rounds - age)
        count = min(len(data) * share // (self.rounds + 1), len(old))
        if not count:
            return data
        generator = moment.seed.generator()
        fading = _some(old, count, generator)
        present = _some(data, len(data) - count, generator)
        return Examples(
            torch.cat([fading.inputs, present.inputs]),
            torch.cat([fading.labels, present.labels]),
        )

    def promise(self, run: Run) -> str:
        """Nothing formal, and what is not hidden at all."""
        return (
            "no formal promise: a shift is spread over "
            f"{self.rounds} rounds, and all of it is there in the end"
        )


def _some(examples: Examples, count: int, generator: torch.Generator) -> Examples:
    """So many of the examples, drawn without replacement."""
    rows = torch.randperm(len(examples), generator=generator)[:count]
    return examples.take(rows.to(examples.labels.device))
