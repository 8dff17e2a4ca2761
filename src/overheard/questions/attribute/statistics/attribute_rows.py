"""What all targets together tell of how well an attribute is told."""

from collections.abc import Iterable, Sequence

import numpy as np

from overheard.core.seeds import Seed
from overheard.findings.beside_control import BesideControl, beside_controls
from overheard.findings.finding import Finding
from overheard.findings.row import CONTROL, Row
from overheard.questions.attribute.statistics.choices import choices
from overheard.statistics.resample import resampled


def attribute_rows(findings: Sequence[Finding], seed: Seed) -> tuple[Row, ...]:
    """Return `balanced_accuracy`, the mean over true values, for each place.

    Blind: always the same value. The control stands beside.
    """
    return tuple(
        row
        for place in beside_controls(findings)
        for row in _of_attributes(place, place.draws(seed))
    )


def _of_attributes(place: BesideControl, seed: Seed) -> list[Row]:
    runs, control = choices(place.planned), choices(place.control)
    if not runs:
        return []
    beside = (
        {CONTROL: _mean(run.balanced_accuracy().once() for run in control)} if control else {}
    )
    value = resampled([run.balanced_accuracy() for run in runs], seed.child("balanced"))
    blind = {"always the same": _mean(1 / run.right.shape[1] for run in runs)}
    return [place.row("balanced_accuracy", "higher", value, blind, beside)]


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))
