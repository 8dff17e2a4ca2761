from pathlib import Path

import pytest

from overheard.auditing.inputs import Resources
from overheard.auditing.run import audit
from overheard_studies.decaf.published import published_tables, score_published_claim
from overheard_studies.decaf.search import (
    TABLES,
    Chosen,
    Setting,
    Training,
    chosen_settings,
    mismatch,
    score_settings,
    search,
)
from overheard_studies.decaf.setting import DecafBenchmark, DecafSize, build_plan
from overheard_studies.decaf.studies import ATTACK, PUBLISHED_DECAF
from overheard_studies.estimates import FindingFilter, mean_score
from overheard_studies.study import MeasurementRun

RESOURCES = Resources(engine="sequential")


@pytest.mark.slow
def test_scores_what_an_audit_of_the_same_setting_finds(
    tiny_benchmark: DecafBenchmark, tmp_path: Path
) -> None:
    training = Training("tiny", tiny_benchmark.model, passes=(1,), equal_steps=False)
    run = MeasurementRun(tmp_path, RESOURCES, True, ())
    setting = Setting("passes_1", "nnls", 0)
    found = score_settings(training, run, 0, tiny_benchmark, [setting])[setting]
    plan = build_plan(tiny_benchmark, DecafSize(1, (0,), test=50), (PUBLISHED_DECAF,))
    audited = audit(plan, tmp_path / "audit", resources=RESOURCES)
    expected = mean_score(audited, FindingFilter(ATTACK, (0,)), "l1").mean
    assert sum(found["table3"]) / 10 == pytest.approx(expected, abs=1e-5)
    assert found["table14"] != found["table3"] != found["table15"]


@pytest.mark.slow
def test_each_training_names_its_best_settings(
    tiny_benchmark: DecafBenchmark, tmp_path: Path
) -> None:
    training = Training("tiny", tiny_benchmark.model, 16, passes=(1,))
    values = search((training,), tiny_benchmark).run(
        tmp_path, quick=True, resources=RESOURCES, on_step=None
    )
    # The number of settings; of two bases the best by two criteria, with three parts each.
    assert len(values) == 1 + 2 * 2 * len(TABLES)
    # Two bases and seven solvers, in one round.
    assert values[0].value == 14
    by_name = {one.name: one.value for one in values}
    for bases in ("passes_1", "equal_steps"):
        by_all, by_third = (
            [by_name[f"tiny_{bases}_{criterion}_{table}"] for table in TABLES]
            for criterion in ("all", "table3")
        )
        assert sum(by_all) <= sum(by_third)
        assert by_third[0] <= by_all[0]


@pytest.mark.slow
def test_chosen_settings_are_compared_by_table_and_user(
    tiny_benchmark: DecafBenchmark, tmp_path: Path
) -> None:
    training = Training("tiny", tiny_benchmark.model, passes=(1,), equal_steps=False)
    chosen = {"all": Chosen(training, Setting("passes_1", "nnls", 0))}
    run = chosen_settings(chosen, tiny_benchmark).run(
        tmp_path, quick=True, resources=RESOURCES, on_step=None
    )
    values = {one.name: one for one in run}
    for table in TABLES:
        users = [values[f"all_{table}_l1_user_{user}"].value or 0 for user in range(1, 11)]
        assert values[f"all_{table}_mean_l1"].value == pytest.approx(sum(users) / 10)
        assert values[f"all_{table}_mismatch"].value == pytest.approx(mismatch(users, table))
    assert values["all_null_removal_matters_more"].published == pytest.approx(0.0945, abs=1e-3)
    assert {"reading_all_fits", "reading_null_removal_matters_more"} <= values.keys()


def test_the_published_claims_have_no_mismatch() -> None:
    for table in TABLES:
        distances = [
            score_published_claim(one, "l1").value for one in published_tables()[table]
        ]
        assert mismatch(distances, table) == 0
        assert mismatch([one + 0.25 for one in distances], table) == pytest.approx(0.25)
