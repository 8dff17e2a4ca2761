"""What following a recording is made of."""

from pathlib import Path

import pytest
import torch

from overheard.archive.layout import messages_path
from overheard.archive.manifest import Manifest
from overheard.archive.recorder import OpenRound, Recorder
from overheard.archive.run_end import mark_end
from overheard.auditing.folder import AuditFolder
from overheard.auditing.following import round_attacker as module
from overheard.auditing.following.follow import begin_to_follow
from overheard.auditing.following.growing_recording import GrowingRecording
from overheard.auditing.following.round_attacker import AttackKey, Pace, RoundAttacker
from overheard.core.errors import TranscriptError
from overheard.core.messages import Broadcast, Evaluation, Message, Update
from overheard.core.parties import SERVER, client
from tests.auditing.conftest import inputs_for
from tests.auditing.following.growing_copy import GrowingCopy
from tests.auditing.plans import TINY

MODEL = {"weight": torch.zeros(2)}


def begin(folder: Path) -> Recorder:
    return Recorder(folder, Manifest(None, "", None, (), (SERVER,), None))


def broadcast(open_round: OpenRound, number: int) -> None:
    message = Message(number, SERVER, frozenset({client(0)}), Broadcast(MODEL))
    open_round.record(message)


def update(open_round: OpenRound, number: int) -> None:
    message = Message(number, client(0), frozenset({SERVER}), Update(MODEL, 3))
    open_round.record(message)


def record_round(recorder: Recorder) -> None:
    number = recorder.committed_rounds()
    with recorder.open_round() as open_round:
        broadcast(open_round, number)
        update(open_round, number)


def numbers(growing: GrowingRecording) -> list[int]:
    return sorted({message.round for message in growing.transcript().messages})


def test_a_recording_that_does_not_exist_has_nothing_new(tmp_path: Path) -> None:
    growing = GrowingRecording(tmp_path / "later", 3)
    assert not growing.read_new_rounds()
    assert not growing.has_ended()
    assert (growing.rounds, growing.newest) == (0, -1)


def test_reads_each_round_once(tmp_path: Path) -> None:
    recorder, growing = begin(tmp_path), GrowingRecording(tmp_path, 3)
    assert not growing.read_new_rounds()
    for number in range(2):
        record_round(recorder)
        assert growing.read_new_rounds()
        assert not growing.read_new_rounds()
        assert (growing.newest, growing.rounds) == (number, number + 1)
        assert 0 <= growing.seconds_since_newest() < 60
    assert growing.parties == {SERVER, client(0)}


def test_keeps_the_latest_rounds_and_counts_all(tmp_path: Path) -> None:
    recorder, growing = begin(tmp_path), GrowingRecording(tmp_path, 2)
    for _ in range(5):
        record_round(recorder)
    assert growing.read_new_rounds()
    assert numbers(growing) == [3, 4]
    assert growing.rounds == 5


def test_a_round_that_is_committed_twice_is_read_again(tmp_path: Path) -> None:
    """A server that evaluates before it trains commits the evaluations first."""
    recorder, growing = begin(tmp_path), GrowingRecording(tmp_path, 2)
    record_round(recorder)
    growing.read_new_rounds()
    with recorder.open_round() as open_round:
        broadcast(open_round, 1)
        open_round.record(Message(1, client(0), frozenset({SERVER}), Evaluation({}, 3)))
        open_round.close()
        assert not growing.read_new_rounds()
        assert growing.newest == 0
        update(open_round, 1)
        open_round.close()
        assert growing.read_new_rounds()
        assert (growing.newest, growing.rounds) == (1, 2)
        assert len(growing.transcript().messages) == 2 + 3
    # The end of the round commits the same messages once more.
    assert not growing.read_new_rounds()


def test_a_round_that_is_taken_back_is_forgotten(tmp_path: Path) -> None:
    recorder, growing = begin(tmp_path), GrowingRecording(tmp_path, 2)
    record_round(recorder)
    record_round(recorder)
    growing.read_new_rounds()
    messages_path(tmp_path / "transcript", 1).unlink()
    assert not growing.read_new_rounds()
    assert (growing.rounds, numbers(growing)) == (1, [0])


def test_the_end_is_known_from_the_recording(tmp_path: Path) -> None:
    record_round(begin(tmp_path))
    growing = GrowingRecording(tmp_path, 2)
    assert not growing.has_ended()
    mark_end(tmp_path)
    assert growing.has_ended()


def test_refuses_a_damaged_round(tmp_path: Path) -> None:
    record_round(begin(tmp_path))
    messages_path(tmp_path / "transcript", 0).write_text("{}\n")
    with pytest.raises(TranscriptError, match="line 1"):
        GrowingRecording(tmp_path, 2).read_new_rounds()


PLAN = "# overheard 1\n# recording {}\na = 1\n"


@pytest.fixture
def growing(recording: Path, tmp_path: Path) -> GrowingCopy:
    """The first two rounds of a recording."""
    copy = GrowingCopy(recording, tmp_path / "growing")
    copy.commit_round(0)
    copy.commit_round(1)
    return copy


@pytest.fixture
def home(growing: GrowingCopy, tmp_path: Path) -> AuditFolder:
    """A folder that follows this recording."""
    home = AuditFolder(tmp_path / "out")
    begin_to_follow(home, PLAN.format("early"), growing.folder)
    return home


QUICK: AttackKey = ((SERVER,), "quick")


QUICKER: AttackKey = ((SERVER,), "quicker")


SLOW: AttackKey = ((SERVER,), "slow")


SLOWER: AttackKey = ((SERVER,), "slower")


ALL = (SLOW, QUICK, SLOWER, QUICKER)


def make_pace(seconds: dict[AttackKey, float]) -> Pace:
    """Return the pace of a run with a round every 10 seconds, at its third round."""
    pace = Pace()
    for rounds in (1, 2, 3):
        pace.note_round(rounds, 10.0 * rounds)
    for attack, took in seconds.items():
        pace.note_attack(attack, 3, took)
    return pace


def test_every_attack_is_run_at_the_first_round() -> None:
    pace = Pace()
    pace.note_round(1, 5.0)
    assert pace.seconds_per_round is None
    assert set(pace.quick(ALL)) == set(ALL)
    assert pace.slow(ALL, 1) is None


def test_measures_the_time_of_a_round_over_rounds_that_arrived_together() -> None:
    pace = Pace()
    pace.note_round(4, 100.0)
    pace.note_round(9, 150.0)
    assert pace.seconds_per_round == 10.0


def test_attacks_that_together_take_a_round_are_repeated_at_each() -> None:
    pace = make_pace({QUICK: 6.0, QUICKER: 4.0})
    assert pace.quick(ALL) == (SLOW, SLOWER, QUICKER, QUICK)  # unknown ones first
    assert pace.slow((QUICK, QUICKER), 4) is None


def test_a_slow_attack_uses_half_of_the_time() -> None:
    # 25 s of 10 s a round: every 5 rounds, so it runs for 25 s of 50 s.
    pace = make_pace({QUICK: 1.0, SLOW: 25.0})
    assert pace.rounds_between(SLOW) == 5
    assert pace.quick((QUICK, SLOW)) == (QUICK,)
    assert [pace.slow((QUICK, SLOW), rounds) for rounds in (3, 7, 8)] == [None, None, SLOW]


def test_one_slow_attack_at_a_time_the_one_that_waited_longest() -> None:
    pace = make_pace({SLOW: 11.0, SLOWER: 12.0})
    pace.note_attack(SLOW, 5, 11.0)
    assert pace.slow((SLOW, SLOWER), 9) == SLOWER


def test_many_quick_attacks_do_not_take_longer_than_a_round_together() -> None:
    pace = make_pace({QUICKER: 4.0, QUICK: 5.0, SLOW: 6.0})
    assert pace.quick((QUICKER, QUICK, SLOW)) == (QUICKER, QUICK)
    assert pace.rounds_between(SLOW) == 2


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
