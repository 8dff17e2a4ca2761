import pytest

from overheard_studies.deanonymization.conclusions import CONCLUSIONS
from overheard_studies.deanonymization.paper import PAPER
from overheard_studies.deanonymization.setting import PUBLISHED
from overheard_studies.study import Study


def test_every_table_and_figure_of_the_paper_has_conclusions() -> None:
    without = {name for name, one in PAPER.studies().items() if not one.conclusions}
    assert without == {"steps"}
    assert CONCLUSIONS.keys() | without == PAPER.studies().keys()


@pytest.mark.parametrize("study", PAPER.studies().values(), ids=lambda one: one.name)
def test_conclusions_have_names_of_their_own_and_rest_on_audits_of_the_study(
    study: Study,
) -> None:
    keys = [one.key for one in study.conclusions]
    assert len(set(keys)) == len(keys)
    audits = study.plans(quick=False)
    for one in study.conclusions:
        assert bool(one.audits) != bool(one.reason_not_run)
        assert set(one.audits) <= audits.keys()
        # Five runs are enough to judge, so the full size must have them.
        assert all(len(audits[name].seeds) >= one.least_runs for name in one.audits)


def margin_of(study: str, key: str) -> float:
    return next(one.margin for one in CONCLUSIONS[study]() if one.key == key)


def test_every_value_of_the_paper_lies_clearly_on_its_side_of_the_margin() -> None:
    times_chance = [
        each["times_chance"]
        for data in PUBLISHED.find("table3").values()
        for prior in data.values()
        for each in prior.values()
    ]
    assert min(times_chance) >= 2 * margin_of("table3", "blogs_above_chance")
    recovered = [
        min(one["federated"] / one["centralised"], one["centralised"] / one["federated"])
        for data in PUBLISHED.find("table2").values()
        for one in data.values()
    ]
    assert min(recovered) - margin_of("table2", "ages_recovers") > 0.1
    alone = PUBLISHED.number("table4", "identity", "identity_single")
    for key in ("gender", "age_group"):
        gain = PUBLISHED.number("table4", key, "identity_joint") - alone
        assert gain > 2 * margin_of("table4", f"blogs_{key}_helps_identity")
