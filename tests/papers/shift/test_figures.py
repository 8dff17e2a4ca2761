from overheard.papers.shift.divergence import Divergence
from overheard.papers.shift.figures import divergence_figures, reading_figures
from overheard.papers.shift.measure import LOSS
from overheard.report.experiment_page import Reading


def test_a_divergence_stands_beside_its_controls() -> None:
    told = Divergence((3.0, 5.0), (1.0, 1.0), (0.5, 0.5), (6.0, 6.0), (1.0, 1.0), 3.0)
    figures = {one.name: one for one in divergence_figures("audit_", "digits", LOSS, told)}
    assert figures["audit_validation_loss_divergence"].ours == 4.0
    assert figures["audit_validation_loss_control"].ours == 1.0
    # 3 - 1 and 5 - 1.
    assert figures["audit_validation_loss_over_control"].ours == 3.0
    assert figures["audit_validation_loss_deviation"].ours == 6.0
    assert {one.published for one in figures.values()} == {None}


def test_what_no_run_tells_is_not_measured() -> None:
    told = Divergence((None,), (None,), (None,), (None,), (None,), 3.0)
    for one in divergence_figures("audit_", "digits", LOSS, told):
        assert one.ours is None
        assert "no run has a trend" in one.setting


def test_a_sentence_is_published_as_holding_and_ours_is_yes_no_or_not_told() -> None:
    answers = ("yes", "no", "undecided")
    readings = [Reading(answer, "It shows.", answer, "by this") for answer in answers]
    assert [(one.ours, one.published) for one in reading_figures(readings)] == [
        (1.0, 1.0),
        (0.0, 1.0),
        (None, 1.0),
    ]
