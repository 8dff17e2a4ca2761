from dataclasses import replace
from pathlib import Path

import pytest

from overheard.auditing.inputs import Resources
from overheard_studies.shift.measured import MeasuredSeries
from overheard_studies.shift.setting import LEAKAGE_SOURCES, LOSS, LeakageMeasure, ShiftScenario
from overheard_studies.shift.studies import centralised
from studies.tests.shift.planted import judge

CONSTANT = dict.fromkeys(range(9), 1.0)


def runs_of(measure: LeakageMeasure, jumps: tuple[float, ...]) -> MeasuredSeries:
    """Make constant controls, and runs that jump in round 6."""
    return MeasuredSeries(
        measure,
        6,
        tuple({**CONSTANT, 6: 1.0 + jump} for jump in jumps),
        (CONSTANT,) * len(jumps),
    )


@pytest.mark.slow
def test_the_centralized_model_has_values_and_a_page(
    tiny: ShiftScenario, resources: Resources, tmp_path: Path
) -> None:
    hostile = replace(tiny, name="<script>alert(1)</script>")
    experiment = centralised(hostile, reduced=tiny.reduced)
    values = {
        one.name: one
        for one in experiment.run(tmp_path, quick=True, resources=resources, on_step=None)
    }
    # Nine sources and two of validation by five values and an AUC each, and four statements.
    assert len(values) == 11 * 6 + 4
    over_control = {name: one for name, one in values.items() if name.endswith("_over_control")}
    assert len(over_control) == 11
    for one in over_control.values():
        assert one.low <= one.value <= one.high
    page = (tmp_path / "figures.html").read_text(encoding="utf-8")
    assert page.count('role="img"') + page.count('class="keys"') == 2 + 11
    assert "<script>alert" not in page
    assert "&lt;script&gt;" in page
    assert 'href="audit/report.html"' in page
    assert "All SoL show the DDS" in page


def test_sources_that_all_jump_show_the_shift_and_a_constant_loss_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    followed = (
        *(runs_of(source, (1.0, 1.1, 0.9)) for source in LEAKAGE_SOURCES),
        runs_of(LOSS, (0.0, 0.0, 0.0)),
    )
    verdicts = judge(monkeypatch, centralised(), {"audit": followed})
    assert verdicts["every_source_shows"].holds == "yes"
    assert verdicts["loss_is_silent"].holds == "yes"


def test_one_constant_source_refutes_that_every_source_shows_the_shift(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    followed = (
        *(runs_of(source, (1.0, 1.1, 0.9)) for source in LEAKAGE_SOURCES[1:]),
        runs_of(LEAKAGE_SOURCES[0], (0.0, 0.0, 0.0)),
        runs_of(LOSS, (1.0, 1.1, 0.9)),
    )
    verdicts = judge(monkeypatch, centralised(), {"audit": followed})
    assert verdicts["every_source_shows"].holds == "no"
    refuted = verdicts["every_source_shows"].evidence.rpartition("; ")[2]
    assert refuted.startswith("no: cosine of weights 0")
    assert verdicts["loss_is_silent"].holds == "no"


@pytest.mark.parametrize(("weights", "others", "holds"), [(1, 9, "yes"), (9, 1, "no")])
def test_weights_are_least_if_all_other_sources_diverge_more(
    weights: int, others: int, holds: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wobble = {**CONSTANT, 2: 1.1}
    followed = [
        MeasuredSeries(
            one,
            6,
            tuple(
                {**wobble, 6: 1.0 + run + (weights if one in LEAKAGE_SOURCES[:3] else others)}
                for run in (0.0, 0.1)
            ),
            (wobble, wobble),
        )
        for one in (*LEAKAGE_SOURCES, LOSS)
    ]
    verdicts = judge(monkeypatch, centralised(), {"audit": followed})
    assert verdicts["weights_are_least"].holds == holds
