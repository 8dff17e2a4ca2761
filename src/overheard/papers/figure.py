"""One number of ours beside the published one."""

from dataclasses import dataclass

from overheard.core.scorer import Better


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of ours beside the one that was published.

    Args:
        name: unique within the experiment.
        setting: what it was measured on, in words.
        ours: the mean over users and seeds; None where it could not be measured, for a reason
            that `setting` gives.
        low: lower end of its 95 % bootstrap interval; None where there is nothing to draw from.
        high: upper end.
        published: what the paper says; None where it says nothing, or its text is lost.
        better: the direction of a better attack or, for an accuracy, of a better model; None
            for what is only shown, such as a share.

    """

    name: str
    setting: str
    ours: float | None
    low: float | None
    high: float | None
    published: float | None
    better: Better | None
