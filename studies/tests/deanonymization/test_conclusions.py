import pytest

from overheard_studies.deanonymization.conclusions import CONCLUSIONS
from overheard_studies.deanonymization.paper import PAPER
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
