import math
from dataclasses import replace

import pytest
import torch

from overheard.core.seeds import Seed
from overheard.questions.shift.estimators.alarm import Alarm, calibrate_alarm

ROUNDS, NUMBERS = 6, 3


def errors_of(clients: int, seed: int, size: float = 1.0) -> torch.Tensor:
    """Draw errors with a correlation of 0.4 between the rounds of a client."""
    generator = torch.Generator().manual_seed(seed)
    persistent = torch.randn(clients, 1, NUMBERS, generator=generator, dtype=torch.float64)
    independent = torch.randn(
        clients, ROUNDS, NUMBERS, generator=generator, dtype=torch.float64
    )
    return size * (math.sqrt(0.4) * persistent + math.sqrt(0.6) * independent)


ALARM = calibrate_alarm(errors_of(300, 0), 0.1, Seed(0))


def alarms(tracks: torch.Tensor, alarm: Alarm = ALARM) -> float:
    """Return the share of tracks that raise an alarm calibrated at 10 %."""
    return sum(max(alarm.read(track)[0]) > alarm.threshold for track in tracks) / len(tracks)


@pytest.mark.slow
def test_runs_without_a_shift_raise_it_at_the_stated_rate() -> None:
    # Clients with the same examples throughout, and clients with an exchange in the middle.
    persistent, exchanged = errors_of(300, 1), errors_of(300, 2)
    exchanged[:, 3:] = errors_of(300, 3)[:, 3:]
    assert alarms(persistent) < 0.1
    assert 0.03 < alarms(exchanged) < 0.18


def test_a_shift_raises_it_and_names_its_round() -> None:
    shifted = errors_of(50, 4)
    shifted[:, 3:, 0] += 8.0
    assert alarms(shifted) == 1
    assert [ALARM.read(track)[1] for track in shifted] == [3] * 50


@pytest.mark.slow
def test_noisier_tracks_than_expected_rarely_raise_it() -> None:
    noisy = errors_of(300, 5)
    noisy = noisy + (noisy - noisy.mean(1, keepdim=True))
    unheeding = replace(ALARM, usual_step=math.inf)
    assert alarms(noisy) < alarms(noisy, unheeding) / 2
    assert float(ALARM.variance_inflation(noisy).median()) == pytest.approx(4, rel=0.3)


def test_the_level_of_a_track_is_no_evidence() -> None:
    alarm, track = calibrate_alarm(errors_of(100, 6), 0.05, Seed(0)), errors_of(1, 7)[0]
    level = torch.tensor([3.0, -5.0, 1.0], dtype=torch.float64)
    assert alarm.read(track + level)[0] == pytest.approx(alarm.read(track)[0], abs=1e-6)


def test_constant_tracks_can_be_read() -> None:
    still = errors_of(60, 8)[:, :1].expand(-1, ROUNDS, -1).contiguous()
    assert all(map(math.isfinite, calibrate_alarm(still, 0.05, Seed(0)).read(still[0])[0]))
