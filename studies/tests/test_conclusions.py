"""A conclusion is judged from enough runs of the audits that it needs."""

from dataclasses import replace
from pathlib import Path

import pytest

from overheard.findings.audit import Audit
from overheard.statistics.estimate import Estimate
from overheard_studies.conclusion import Conclusion
from overheard_studies.conclusions_page import (
    conclusion_counts,
    conclusions_page,
    judge_stored,
    of_papers,
)
from overheard_studies.decaf.setting import DecafBenchmark
from overheard_studies.experiments import StoredExperiment, load_experiments
from overheard_studies.how_run import CHECKOUT, HowRun
from overheard_studies.pages.experiment_page import PaperStatement, State
from overheard_studies.reproduce import find_papers
from overheard_studies.runs import StudyRuns
from overheard_studies.study import Study
from overheard_studies.values import StoredValues
from studies.tests.test_experiment import counting

FIVE_PAPERS = {"deanonymization", "decaf", "flip", "shift", "whispers"}

ABOVE = Conclusion("above", "It is above 0.3.", lambda *_: {"it": Estimate(0.5, 0.4, 0.6)})


def runs_of(study: Study, **seeds: int) -> StudyRuns:
    """Make finished audits with so many seeds, without findings."""
    plans = {
        name: study.plans(quick=False)[name].model_copy(update={"seeds": tuple(range(count))})
        for name, count in seeds.items()
    }
    audits = {
        name: Audit("", "", (), (), (), (), one.toml(), {}) for name, one in plans.items()
    }
    return StudyRuns(audits, plans, Path())


@pytest.mark.parametrize(
    ("seeds", "least", "holds", "told"),
    [
        (5, 5, "yes", "yes: it 0.50 (0.40 to 0.60)"),
        (4, 5, "undecided", "4 runs of 5; yes: it"),
        (1, 5, "undecided", "1 run of 5; yes: it"),
        (1, 1, "yes", "yes: it"),
    ],
)
def test_fewer_than_five_runs_decide_nothing(
    tiny_benchmark: DecafBenchmark, seeds: int, least: int, holds: str, told: str
) -> None:
    study = replace(
        counting(tiny_benchmark), conclusions=(replace(ABOVE, margin=0.3, least_runs=least),)
    )
    (one,) = study.conclude(runs_of(study, first=seeds, second=9), ())
    assert one.holds == holds
    assert one.evidence.startswith(told)


def test_only_the_audits_that_a_conclusion_needs_must_be_there(
    tiny_benchmark: DecafBenchmark,
) -> None:
    needing = (ABOVE, replace(ABOVE, audits=("first",)), replace(ABOVE, audits=("second",)))
    study = replace(counting(tiny_benchmark), conclusions=needing)
    of_all, of_first, of_second = study.conclude(runs_of(study, first=5), ())
    assert of_first.holds == "yes"
    for one in (of_all, of_second):
        assert (one.holds, one.evidence) == ("undecided", "not run: second")


def test_a_conclusion_that_cannot_be_judged_here_says_why() -> None:
    told = replace(ABOVE, statistics=None, reason_not_run="the photos are not here")
    (one,) = Study("table9", "Photos", "", conclusions=(told,)).conclude(
        StudyRuns({}, {}, Path()), ()
    )
    assert (one.holds, one.evidence) == ("cannot be run here", "the photos are not here")
    for wrong in ({"statistics": None}, {"reason_not_run": "no photos"}):
        with pytest.raises(ValueError, match="either statistics or"):
            replace(ABOVE, **wrong)


def stored(study: Study, *statements: PaperStatement) -> StoredExperiment:
    how_run = HowRun("a" * 40 + "-dirty", "2026-11-27", (), "1 audit", "cpu, float32", 7200.0)
    values = StoredValues("figure5", False, "", (), how_run, statements)
    return StoredExperiment("shift/figure5", study, values)


def told(one: StoredExperiment) -> PaperStatement:
    ((_, statement),) = judge_stored(one)
    return statement


def test_a_stored_conclusion_counts_only_as_it_is_stated_now() -> None:
    study = Study("figure5", "A figure", "", conclusions=(ABOVE,), hours=3.0)
    found = PaperStatement("above", ABOVE.statement, "yes", "it is 0.5", ABOVE.condition)
    assert told(stored(study, found)) == found
    for changed in (
        replace(found, statement="It is below."),
        replace(found, condition="below 0"),
        replace(found, key="other"),
    ):
        one = told(stored(study, changed))
        assert (one.holds, one.evidence.partition(":")[0]) == ("undecided", "not judged")
    one = told(StoredExperiment("shift/figure5", study, None))
    assert (one.holds, one.evidence) == ("undecided", "not run: 3 core hours")


def test_a_quick_run_counts_only_where_the_full_one_lacks_runs() -> None:
    study = Study("figure5", "A figure", "", conclusions=(ABOVE,))
    full, quick = (
        PaperStatement("above", ABOVE.statement, "undecided", words, ABOVE.condition)
        for words in ("1 run of 5", "6 runs")
    )

    def both(*of_full: PaperStatement, holds: State) -> PaperStatement:
        of_quick = stored(study, replace(quick, holds=holds))
        return told(replace(stored(study, *of_full), quick_run=of_quick))

    assert both(full, holds="no").evidence == "6 runs"
    assert both(holds="undecided").evidence == "6 runs"
    assert both(full, holds="undecided") == full
    assert both(replace(full, holds="yes"), holds="no").holds == "yes"
    by_interval = replace(full, evidence="undecided: l1 0.03 (0.0 to 0.1)")
    assert both(by_interval, holds="no") == by_interval


def test_what_is_judged_at_a_reduced_size_is_told_and_counted_apart() -> None:
    study = Study("figure5", "A figure", "", conclusions=(ABOVE,))
    found = PaperStatement("above", ABOVE.statement, "no", "it is 0.1", ABOVE.condition)
    full = stored(study, found)
    quick = replace(full, stored=replace(full.stored, quick=True))
    rows = [conclusion_counts([one]).rows[0] for one in (full, quick)]
    # After the paper, its experiments and runs: holds and does not, each here and reduced.
    assert [row[3:7] for row in rows] == [("0", "0", "1", "0"), ("0", "0", "0", "1")]
    assert "| does not hold at a reduced size | it is 0.1 |" in conclusions_page([quick])


def test_the_page_of_conclusions_counts_them_by_paper() -> None:
    photos = replace(ABOVE, key="b", statistics=None, reason_not_run="no [photos] | here")
    study = Study("figure5", "A figure", "", conclusions=(ABOVE, photos), hours=3.0)
    found = PaperStatement("above", ABOVE.statement, "no", "it is 0.1", ABOVE.condition)
    lines = conclusions_page([stored(study, found)]).splitlines()
    # Of one experiment, which was run, one conclusion does not hold and one cannot be judged.
    assert "| shift | 1 | 1 | 0 | 0 | 1 | 0 | 0 | 1 | 2.0 | 0 |" in lines
    size = "own size (1 audit), commit aaaaaaaa-dirty"
    row = f"does not hold here | it is 0.1 | above 0 | {size} |"
    assert any(line.endswith(row) for line in lines)
    assert any(r"cannot be run here | no \[photos\] \| here |" in line for line in lines)


def test_the_page_of_the_checkout_is_that_of_its_stored_values() -> None:
    experiments = of_papers(load_experiments(CHECKOUT / "studies" / "reproduced"))
    page = (CHECKOUT / "studies" / "conclusions.md").read_text("utf-8")
    assert page == conclusions_page(experiments), "run the command that the page names"


def test_each_experiment_of_the_five_papers_is_stored_or_says_what_it_takes() -> None:
    silent = [
        one.name
        for one in load_experiments(CHECKOUT / "studies" / "reproduced")
        if one.name.partition("/")[0] in FIVE_PAPERS
        and not (one.stored or one.study.hours or one.study.reason_not_run)
    ]
    assert silent == [], "run it, or state its hours or reason_not_run"


def test_conclusions_of_papers_name_known_audits_and_need_five_runs() -> None:
    for name, paper in find_papers().items():
        for study in paper.studies().values():
            for one in study.conclusions:
                assert set(one.audits) <= {panel.key for panel in study.panels}
                assert one.least_runs >= 5 or name == "overheard"
