from dataclasses import replace
from pathlib import Path

import pytest

from overheard.auditing.supplies import Resources
from overheard.papers.shift.experiment import Followings
from overheard.papers.shift.followed import Followed, Series
from overheard.papers.shift.measure import LOSS, source_of_leakage
from overheard.papers.shift.sensitivity import EVEN, SensitivityExperiment
from overheard.papers.shift.world import MNIST, ShiftScenario

CMD = source_of_leakage("gradients", "cmd")
WOBBLE = {**dict.fromkeys(range(9), 1.0), 2: 1.1}
EXPERIMENT = SensitivityExperiment("figure7a", MNIST, CMD)


def jumped(height: float) -> tuple[Series, Series]:
    """Two runs that jump by nearly the same in round 6."""
    return ({**WOBBLE, 6: 1.0 + height}, {**WOBBLE, 6: 1.01 + height})


def told(source: dict[float, float], loss: dict[float, float]) -> dict[str, Followings]:
    return {
        f"even_{100 * even:.0f}": Followings(
            tuple(
                Followed(one, 6, jumped(heights[even]), (WOBBLE, WOBBLE))
                for one, heights in ((CMD, source), (LOSS, loss))
            ),
            (),
        )
        for even in EVEN
    }


@pytest.mark.slow
def test_each_severity_is_a_point_beside_the_control(
    tiny: ShiftScenario, resources: Resources, tmp_path: Path
) -> None:
    size = replace(tiny.reduced, seeds=(0,))
    experiment = SensitivityExperiment("figure7a", replace(tiny, reduced=size), CMD)
    figures = {
        one.name: one
        for one in experiment.run(tmp_path, quick=True, resources=resources, on_step=None)
    }
    # Two measures by six numbers at four severities, and five sentences.
    assert len(figures) == 4 * 2 * 6 + 5
    # The control of a seed is the same run whatever the severity beside it.
    controls = {
        one.ours for name, one in figures.items() if name.endswith("gradients_cmd_control")
    }
    assert len(controls) == 1
    page = (tmp_path / "figures.html").read_text(encoding="utf-8")
    for name in ("50-50", "60-40", "70-30", "80-20", "90-10"):
        assert f">{name}</text>" in page


def test_a_source_that_rises_with_severity_over_a_silent_loss_is_all_the_paper_says() -> None:
    rising = {even: 20 * (even - 0.5) for even in EVEN}
    late = {0.6: 0.0, 0.7: 0.0, 0.8: 0.0, 0.9: 1.0}
    answers = EXPERIMENT.answers(told(rising, late))
    assert answers["subtle_shifts_show"].holds == "yes"
    assert answers["loss_is_silent_at_subtle"].holds == "yes"
    assert answers["above_the_diagonal"].holds == "yes"
    assert answers["severity_is_told"].holds == "yes"
    assert answers["severity_is_not_told"].holds == "no"


def test_a_subtle_shift_above_a_severe_one_is_out_of_order() -> None:
    wild = {0.6: 5.0, 0.7: 3.0, 0.8: 9.0, 0.9: 1.0}
    answers = EXPERIMENT.answers(told(wild, wild))
    assert answers["severity_is_not_told"].holds == "yes"
    assert answers["severity_is_told"].holds == "no"
    assert answers["above_the_diagonal"].holds != "yes"


@pytest.mark.parametrize(("early", "holds"), [(0.5, "yes"), (-0.015, "no")])
def test_a_loss_that_moves_at_subtle_shifts_is_not_silent(early: float, holds: str) -> None:
    # The line through 1, 1.1, 1, 1, 1 gives 0.99 at round 6: controls are 0.01 off it, and runs
    # at 0.985 and 0.995 are 0.005 off.
    loss = {0.6: early, 0.7: early, 0.8: 1.0, 0.9: 1.0}
    answers = EXPERIMENT.answers(told(loss, loss))
    assert (answers["loss_is_not_silent"].holds == "yes") == (holds == "yes")
