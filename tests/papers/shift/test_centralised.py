from dataclasses import replace
from pathlib import Path

import pytest

from overheard.auditing.supplies import Resources
from overheard.papers.shift.centralised import CentralisedExperiment
from overheard.papers.shift.experiment import Followings
from overheard.papers.shift.followed import Followed
from overheard.papers.shift.measure import LOSS, SOURCES, LeakageMeasure
from overheard.papers.shift.world import ShiftScenario

STILL = dict.fromkeys(range(9), 1.0)


def runs_of(measure: LeakageMeasure, jumps: tuple[float, ...]) -> Followed:
    """Controls that never move, and runs that jump in round 6."""
    return Followed(
        measure, 6, tuple({**STILL, 6: 1.0 + jump} for jump in jumps), (STILL,) * len(jumps)
    )


@pytest.mark.slow
def test_one_model_leaves_figures_and_a_page(
    tiny: ShiftScenario, resources: Resources, tmp_path: Path
) -> None:
    hostile = replace(tiny, name="<script>alert(1)</script>")
    experiment = CentralisedExperiment(hostile, reduced=tiny.reduced)
    figures = {
        one.name: one
        for one in experiment.run(tmp_path, quick=True, resources=resources, on_step=None)
    }
    # Nine sources and two of validation by five numbers and an AUC each, and four sentences.
    assert len(figures) == 11 * 6 + 4
    told = {name: one for name, one in figures.items() if name.endswith("_over_control")}
    assert len(told) == 11
    for one in told.values():
        assert one.low <= one.ours <= one.high
    page = (tmp_path / "figures.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 2 + 11
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert 'href="audit/report.html"' in page
    assert "All SoL show the DDS" in page


def test_sources_that_all_jump_show_the_shift_and_a_quiet_loss_does_not() -> None:
    followed = (
        *(runs_of(source, (1.0, 1.1, 0.9)) for source in SOURCES),
        runs_of(LOSS, (0.0, 0.0, 0.0)),
    )
    answers = CentralisedExperiment().answers({"audit": Followings(followed, ())})
    assert answers["every_source_shows"].holds == "yes"
    assert answers["loss_is_silent"].holds == "yes"


def test_one_source_that_stays_still_is_not_every_source() -> None:
    followed = (
        *(runs_of(source, (1.0, 1.1, 0.9)) for source in SOURCES[1:]),
        runs_of(SOURCES[0], (0.0, 0.0, 0.0)),
        runs_of(LOSS, (1.0, 1.1, 0.9)),
    )
    answers = CentralisedExperiment().answers({"audit": Followings(followed, ())})
    assert answers["every_source_shows"].holds == "no"
    assert answers["every_source_shows"].because.endswith("no: cosine of weights")
    assert answers["loss_is_silent"].holds == "no"


@pytest.mark.parametrize(("weights", "others", "holds"), [(1, 9, "yes"), (9, 1, "no")])
def test_weights_are_least_where_all_else_is_farther_off(
    weights: int, others: int, holds: str
) -> None:
    wobble = {**STILL, 2: 1.1}
    followed = [
        Followed(
            one,
            6,
            tuple(
                {**wobble, 6: 1.0 + run + (weights if one in SOURCES[:3] else others)}
                for run in (0.0, 0.1)
            ),
            (wobble, wobble),
        )
        for one in (*SOURCES, LOSS)
    ]
    answers = CentralisedExperiment().answers({"audit": Followings(tuple(followed), ())})
    assert answers["weights_are_least"].holds == holds
