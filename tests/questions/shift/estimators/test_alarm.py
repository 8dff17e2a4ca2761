import math

import pytest
import torch

from overheard.questions.shift.estimators import change_scan
from overheard.questions.shift.estimators.tracker import Alarm, calibrate_alarm

ROUNDS, NUMBERS, CHUNK = 8, 3, 2


def tracks_of(runs: int, seed: int, size: float = 1.0) -> torch.Tensor:
    """Draw tracks whose level changes by chance at an exchange every two rounds."""
    generator = torch.Generator().manual_seed(seed)
    levels = torch.randn(runs, ROUNDS // CHUNK, NUMBERS, generator=generator).double()
    noise = torch.randn(runs, ROUNDS, NUMBERS, generator=generator).double()
    return size * (levels.repeat_interleave(CHUNK, 1) + 0.5 * noise)


ALARM = calibrate_alarm(tracks_of(119, 0), 0.1)


def rate_of(alarm: Alarm, tracks: torch.Tensor) -> float:
    """Return the share of tracks that raise an alarm."""
    assert alarm.threshold is not None
    return sum(max(alarm.read(track)[0]) > alarm.threshold for track in tracks) / len(tracks)


def test_runs_like_the_simulated_ones_raise_it_at_the_stated_rate() -> None:
    assert 0.03 < rate_of(ALARM, tracks_of(300, 1)) < 0.17


def test_a_shift_raises_it_and_names_its_round() -> None:
    shifted = tracks_of(50, 2)
    shifted[:, 4:, 0] += 12.0
    assert rate_of(ALARM, shifted) == 1
    assert [ALARM.read(track)[1][-1] for track in shifted] == [4] * 50


def test_the_track_s_own_variation_lowers_the_evidence_of_a_wild_run(monkeypatch) -> None:
    wild = tracks_of(100, 3, size=2.0)
    heeding = sum(ALARM.read(track)[0][-1] for track in wild)
    monkeypatch.setattr(change_scan, "SIMULATED_WEIGHT", 1e9)
    unheeding = sum(ALARM.read(track)[0][-1] for track in wild)
    assert heeding < unheeding - 50


def test_an_inflated_variance_lowers_the_evidence_and_not_the_threshold() -> None:
    inflated = calibrate_alarm(tracks_of(119, 0), 0.1, 2.0)
    assert inflated.threshold == ALARM.threshold
    track = tracks_of(1, 4)[0]
    assert max(inflated.read(track)[0]) < max(ALARM.read(track)[0])


def test_the_level_of_a_track_is_no_evidence() -> None:
    track, level = tracks_of(1, 5)[0], torch.tensor([3.0, -5.0, 1.0]).double()
    assert ALARM.read(track + level)[0] == pytest.approx(ALARM.read(track)[0], abs=1e-6)


def test_evidence_depends_on_no_later_round() -> None:
    track = tracks_of(1, 6)[0]
    changed = track.clone()
    changed[5:] += 100.0
    # Evidence starts at round 1, so that the first four are those of rounds 1 to 4.
    assert ALARM.read(changed)[0][:4] == ALARM.read(track)[0][:4]
    assert ALARM.read(changed)[0][4:] != ALARM.read(track)[0][4:]


def test_too_few_runs_for_the_rate_give_no_threshold() -> None:
    # The largest of 18 is exceeded with probability 1/19, above 5 %; of 19 with 1/20.
    assert calibrate_alarm(tracks_of(18, 7), 0.05).threshold is None
    assert calibrate_alarm(tracks_of(19, 7), 0.05).threshold is not None
    assert calibrate_alarm(tracks_of(19, 7), None).threshold is None


def test_a_lower_rate_has_a_higher_threshold() -> None:
    strict = calibrate_alarm(tracks_of(119, 0), 0.01)
    assert strict.threshold > ALARM.threshold
    assert all(map(math.isfinite, strict.read(tracks_of(1, 8)[0])[0]))
