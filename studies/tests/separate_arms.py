"""Runs one arm of an experiment, then all of its arms in the same folder."""

from pathlib import Path

from overheard.auditing.inputs import Resources
from overheard_studies.portion import Portion
from overheard_studies.study import LEFT_OUT, Study
from overheard_studies.values import ReproducedValue


def run_one_arm_then_all(
    experiment: Study, arm: str, folder: Path, resources: Resources
) -> tuple[ReproducedValue, ...]:
    """The values of all arms, of which those of the first run must be a part."""
    first, whole = (
        experiment.run(
            folder,
            quick=True,
            resources=resources,
            on_step=None,
            portion=Portion(arms=arms),
        )
        for arms in ((arm,), ())
    )
    # Conclusions may need all arms.
    measured = [
        one
        for one in first
        if not one.name.endswith(LEFT_OUT) and not one.name.startswith("reading_")
    ]
    assert measured
    assert all(one in whole for one in measured)
    assert len(measured) < len(whole)
    assert not any(one.name.endswith(LEFT_OUT) for one in whole)
    return whole
