"""Slow attacks keep their last claims, and are told, while quick ones follow each round."""

from pathlib import Path

import pytest

from overheard.auditing.following import round_attacker as module
from overheard.auditing.following.growing_recording import GrowingRecording
from overheard.auditing.following.round_attacker import RoundAttacker
from tests.auditing.conftest import inputs_for
from tests.auditing.following.growing_copy import GrowingCopy
from tests.auditing.plans import TINY


def test_a_slow_attack_keeps_its_claims_and_is_told(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = GrowingCopy(recording, tmp_path / "growing")
    copy.commit_round(0)
    growing = GrowingRecording(copy.folder, 10)
    growing.read_new_rounds()
    attacker = RoundAttacker(inputs_for(TINY), copy.folder, growing)
    # At 0 s the first round; the attacks take 1 s and 100 s. At 10 s the second round, after
    # which only the first attack is run, for 1 s.
    times = iter((0.0, 0.0, 1.0, 1.0, 101.0, 10.0, 10.0, 11.0))
    monkeypatch.setattr(module, "monotonic", lambda: next(times))
    first = attacker.attack_quickly()
    attacker.attack_slowly()
    assert first.notes == ()
    copy.commit_round(1)
    growing.read_new_rounds()
    second = attacker.attack_quickly()
    attacker.attack_slowly()
    assert next(times, None) is None
    # 100 s in half of the time, with 10 s a round: every 20 rounds.
    check, note = second.notes
    assert check == "The replies lead to the next broadcasts by the mean of the replies."
    assert note == "mean_softmax takes longer than a round: repeated every 20 rounds"
    claims = {(one.cell.part, one.cell.rounds) for one in second.audit.findings}
    assert claims == {("bias_inversion", (0, 1)), ("mean_softmax", (0,))}
