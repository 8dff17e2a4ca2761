from dataclasses import replace
from pathlib import Path

import pytest

from overheard.auditing.inputs import Resources
from overheard_studies.pages.experiment_page import PaperStatement
from overheard_studies.shift.federated import EVEN_SHARES, sensitivity
from overheard_studies.shift.measured import MeasuredSeries, RoundSeries
from overheard_studies.shift.setting import LOSS, MNIST, ShiftScenario, source_of_leakage
from studies.tests.shift.planted import judge

CMD = source_of_leakage("gradients", "cmd")
WOBBLE = {**dict.fromkeys(range(9), 1.0), 2: 1.1}


def verdicts_of(
    monkeypatch: pytest.MonkeyPatch, measured: dict[str, tuple[MeasuredSeries, ...]]
) -> dict[str, PaperStatement]:
    """Judge the statements of all parts of Figure 7."""
    parts = [sensitivity(f"figure7{part}", MNIST, CMD) for part in "abc"]
    return {k: v for one in parts for k, v in judge(monkeypatch, one, measured).items()}


def jumped(height: float) -> tuple[RoundSeries, RoundSeries]:
    """Make two runs that jump by nearly the same amount in round 6."""
    return ({**WOBBLE, 6: 1.0 + height}, {**WOBBLE, 6: 1.01 + height})


def measurements(
    source: dict[float, float], loss: dict[float, float]
) -> dict[str, tuple[MeasuredSeries, ...]]:
    return {
        f"even_{100 * even:.0f}": tuple(
            MeasuredSeries(one, 6, jumped(heights[even]), (WOBBLE, WOBBLE))
            for one, heights in ((CMD, source), (LOSS, loss))
        )
        for even in EVEN_SHARES
    }


@pytest.mark.slow
def test_each_severity_and_the_control_are_points(
    tiny: ShiftScenario, resources: Resources, tmp_path: Path
) -> None:
    size = replace(tiny.reduced, seeds=(0,))
    experiment = sensitivity("figure7a", replace(tiny, reduced=size), CMD)
    values = {
        one.name: one
        for one in experiment.run(tmp_path, quick=True, resources=resources, on_step=None)
    }
    # Two measures by seven values at four severities, and twelve statements.
    assert len(values) == 4 * 2 * 7 + 12
    # The control of a seed is the same run for every severity.
    controls = {
        one.value for name, one in values.items() if name.endswith("gradients_cmd_control")
    }
    assert len(controls) == 1
    page = (tmp_path / "figures.html").read_text(encoding="utf-8")
    for name in ("50-50", "60-40", "70-30", "80-20", "90-10"):
        assert f">{name}</text>" in page


def test_a_source_that_rises_with_severity_and_a_constant_loss_confirm_the_paper(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rising = {even: 20 * (even - 0.5) for even in EVEN_SHARES}
    late = {0.6: 0.0, 0.7: 0.0, 0.8: 0.0, 0.9: 1.0}
    verdicts = verdicts_of(monkeypatch, measurements(rising, late))
    assert verdicts["subtle_shifts_show"].holds == "yes"
    assert verdicts["loss_is_silent_at_subtle"].holds == "yes"
    assert verdicts["above_the_diagonal"].holds == "yes"
    assert verdicts["severity_is_told"].holds == "yes"
    assert verdicts["severity_is_not_told"].holds == "no"


def test_a_subtle_shift_above_a_severe_one_hides_the_severity(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wild = {0.6: 5.0, 0.7: 3.0, 0.8: 9.0, 0.9: 1.0}
    verdicts = verdicts_of(monkeypatch, measurements(wild, wild))
    assert verdicts["severity_is_not_told"].holds == "yes"
    assert verdicts["severity_is_told"].holds == "no"
    assert verdicts["above_the_diagonal"].holds != "yes"


@pytest.mark.parametrize(("early", "holds"), [(0.5, "yes"), (-0.015, "no")])
def test_a_loss_that_diverges_at_subtle_shifts_is_not_silent(
    early: float, holds: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The line through 1, 1.1, 1, 1, 1 gives 0.99 at round 6: controls diverge by 0.01, and runs
    # at 0.985 and 0.995 by 0.005.
    loss = {0.6: early, 0.7: early, 0.8: 1.0, 0.9: 1.0}
    verdicts = verdicts_of(monkeypatch, measurements(loss, loss))
    assert (verdicts["loss_is_not_silent"].holds == "yes") == (holds == "yes")
