"""One reproduced value and the published one."""

from dataclasses import dataclass

from overheard.core.scorer import Better


@dataclass(frozen=True, slots=True)
class ReproducedValue:
    """One reproduced value and the value that the paper publishes.

    Args:
        name: unique within the experiment.
        setting: description of what it was measured on.
        value: mean over users and seeds; None if it could not be measured; `setting` then says
            why.
        low: lower end of its 95 % interval; None if there is none.
        high: upper end of the interval.
        published: the paper's value; None if it gives none, or if that part of its text is
            lost.
        better: whether higher or lower values mean a better attack or, for an accuracy, a
            better model; None for a value without a direction, such as a share.

    """

    name: str
    setting: str
    value: float | None
    low: float | None
    high: float | None
    published: float | None
    better: Better | None
