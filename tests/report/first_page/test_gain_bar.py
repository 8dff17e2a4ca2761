"""A bar has guessing at its left and a perfect claim at its right, whatever the score."""

from dataclasses import replace

import pytest

from overheard.auditing.threat_results import with_verdicts
from overheard.findings.audit import Audit
from overheard.findings.threat_results import ThreatResult
from overheard.report.first_page.gain_bar import LEAST, GainBar, gain_bar, place
from overheard.report.page import render_page
from overheard.statistics.estimate import Estimate


def leak_of(small: Audit) -> ThreatResult:
    return small.arm_results[0].threat_results[0]


def with_scores(found: ThreatResult, gain: Estimate, **changes: object) -> ThreatResult:
    """Return the result with another gain, and other facts of its main score."""
    best = found.attack_results[0]
    row = replace(best.headline_row, **changes)  # type: ignore[arg-type]
    best = replace(best, rows_by_score={best.headline: row})
    judgement = replace(found.judgement, gain=gain)
    return replace(found, attack_results=(best,), judgement=judgement)


def test_the_gain_is_a_share_of_what_a_perfect_claim_gains(small: Audit) -> None:
    bar = gain_bar(leak_of(small))
    assert bar is not None
    # l1: 0.20 and 0.04 where guessing has 1.0 and 0.6; a gain of 0.68 of 0.80, margin 0.1.
    assert bar.mean == pytest.approx(0.85)
    assert bar.margin == pytest.approx(0.125)
    assert bar.number.replace("\u00a0", " ") == "85 %"


def test_low_and_high_scores_have_one_scale(small: Audit) -> None:
    gain = Estimate(0.3, 0.15, 0.9)
    low = with_scores(leak_of(small), gain, better="lower", best_uninformed=0.6)
    high = with_scores(leak_of(small), gain, better="higher", best_uninformed=0.4)
    for found in (low, high):
        bar = gain_bar(found)
        assert bar is not None
        # What guessing leaves open is 0.6; the interval ends at a perfect claim.
        assert (bar.mean, bar.low, bar.high) == (0.5, 0.25, 1.0)


def test_what_labels_alone_tell_is_part_of_the_guess(small: Audit) -> None:
    found = with_scores(
        leak_of(small), Estimate(0.2, None, None), better="higher", best_uninformed=0.5
    )
    attack = found.attack_results[0].attack
    judgement = replace(found.judgement, shared_gains={attack: 0.1})
    bar = gain_bar(replace(found, judgement=judgement))
    assert bar is not None
    assert bar.mean == pytest.approx(0.5)  # 0.2 of 1 - 0.6
    assert (bar.low, bar.high) == (None, None)


@pytest.mark.parametrize(
    "changes",
    [
        {"best_uninformed": None},
        {"best_uninformed": 0.0},  # guessing makes no error
        {"better": "higher", "best_uninformed": 3.0},  # no score of 1 is perfect
        {"better": "higher", "best_uninformed": 0.9},  # gains more than a score of 1 would
    ],
)
def test_without_a_known_scale_no_bar_is_drawn(
    small: Audit, changes: dict[str, object]
) -> None:
    assert gain_bar(with_scores(leak_of(small), Estimate(0.2, 0.1, 0.3), **changes)) is None


def test_where_a_perfect_claim_gains_hardly_anything_no_bar_looks_like_a_leak(
    small: Audit,
) -> None:
    found = leak_of(small)
    nothing = replace(found, judgement=replace(found.judgement, verdict="nothing to read"))
    assert gain_bar(nothing) is None


def test_worse_than_guessing_is_left_of_the_guess_and_is_no_gain() -> None:
    worse = GainBar(-3.0, -9.0, 0.1, None)
    assert worse.number == "none"
    assert worse.text.startswith("does no better than guessing")
    assert worse.is_cut
    assert place(worse.mean) == place(LEAST) < place(0.0) < place(1.0)
    assert not GainBar(0.2, LEAST, 0.4, None).is_cut


def test_the_page_draws_each_field_and_says_it_to_screen_readers(small: Audit) -> None:
    page = render_page(small).replace("\u00a0", " ")
    assert page.count('<svg class="bar"') == 2
    assert 'aria-label="The best attack learns 85 % of what guessing leaves open' in page
    assert '<rect class="gain leaks"' in page
    assert '<rect class="gain no-leak-above-margin"' in page
    assert "The scale of the bars is linear" in page


def test_a_field_without_a_score_has_an_empty_bar(small: Audit) -> None:
    run = replace(small.arms[0], has_truth=False)
    unchecked = tuple(replace(one, true=None, scores=()) for one in small.findings[:2])
    page = render_page(with_verdicts(replace(small, arms=(run,), findings=unchecked)))
    assert '<rect class="empty"' in page
    assert '<rect class="gain' not in page
    # Without a bar, nothing explains bars.
    assert "The scale of the bars" not in page
