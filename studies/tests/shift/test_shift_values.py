from pathlib import Path

from overheard_studies.pages.experiment_page import PaperStatement
from overheard_studies.runs import StudyRuns
from overheard_studies.shift.measured import Divergence
from overheard_studies.shift.setting import LOSS
from overheard_studies.shift.studies import _divergence_values
from overheard_studies.study import PanelRun, _statement_value

RUN = PanelRun(StudyRuns({}, {}, Path()), "audit", "digits")


def test_a_divergence_is_reported_with_its_controls() -> None:
    divergence = Divergence((3.0, 5.0), (1.0, 1.0), (0.5, 0.5), (6.0, 6.0), (1.0, 1.0))
    values = {one.name: one for one in _divergence_values("audit_", RUN, LOSS, divergence)}
    assert values["audit_validation_loss_divergence"].value == 4.0
    assert values["audit_validation_loss_control"].value == 1.0
    # 3 - 1 and 5 - 1.
    assert values["audit_validation_loss_over_control"].value == 3.0
    assert values["audit_validation_loss_deviation"].value == 6.0
    assert values["audit_validation_loss_control_deviation"].value == 1.0
    assert {one.published for one in values.values()} == {None}


def test_a_divergence_without_a_trend_is_not_measured() -> None:
    divergence = Divergence((None,), (None,), (None,), (None,), (None,))
    for one in _divergence_values("audit_", RUN, LOSS, divergence):
        assert one.value is None
        assert "no run has a trend" in one.setting


def test_a_statement_is_published_as_1_and_reproduced_as_1_0_or_none() -> None:
    verdicts = ("yes", "no", "undecided")
    statements = [
        PaperStatement(verdict, "It shows.", verdict, "by this") for verdict in verdicts
    ]
    assert [(one.value, one.published) for one in map(_statement_value, statements)] == [
        (1.0, 1.0),
        (0.0, 1.0),
        (None, 1.0),
    ]
