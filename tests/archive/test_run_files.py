"""Small files of a run."""

from math import inf, nan
from pathlib import Path

import pytest
import torch

from overheard.archive.layout import end_path, seconds_path
from overheard.archive.manifest import Manifest
from overheard.archive.recorder import Recorder
from overheard.archive.requested_rounds import RequestedRounds, count_requested_rounds
from overheard.archive.run_config import (
    parse_setting,
    plain_name,
    read_run_config,
    run_config_text,
)
from overheard.archive.run_end import has_ended, mark_end
from overheard.archive.run_time import RunTime, read_run_time, write_run_time
from overheard.core.errors import TranscriptError
from overheard.core.messages import (
    Aggregate,
    Broadcast,
    Evaluation,
    Message,
    MessageBody,
    MissingReply,
    Update,
)
from overheard.core.parties import COHORT, SERVER, Party, client
from overheard.core.transcript import Transcript


def begin(folder: Path, rounds: int | None) -> Recorder:
    return Recorder(folder, Manifest(None, "", None, (), (SERVER,), rounds))


def record_round(recorder: Recorder) -> None:
    number = recorder.committed_rounds()
    with recorder.open_round() as open_round:
        open_round.record(Message(number, client(0), frozenset({SERVER}), MissingReply("late")))


def test_a_run_with_planned_rounds_ends_with_its_final_model(tmp_path: Path) -> None:
    recorder = begin(tmp_path, rounds=1)
    record_round(recorder)
    assert not has_ended(tmp_path)
    record_round(recorder)
    assert has_ended(tmp_path)


@pytest.mark.parametrize("rounds", [None, 9])
def test_a_run_that_stops_early_or_at_any_time_ends_with_the_mark(
    tmp_path: Path, rounds: int | None
) -> None:
    recorder = begin(tmp_path, rounds)
    record_round(recorder)
    assert not has_ended(tmp_path)
    mark_end(tmp_path)
    assert has_ended(tmp_path)
    # A further round cancels the mark.
    record_round(recorder)
    assert not has_ended(tmp_path)


@pytest.mark.parametrize("content", ["", "7", '{"rounds": -1}', '{"rounds": 1, "more": 2}'])
def test_refuses_a_damaged_mark(tmp_path: Path, content: str) -> None:
    record_round(begin(tmp_path, rounds=None))
    end_path(tmp_path / "transcript").write_text(content)
    with pytest.raises(TranscriptError, match=r"ended\.json is damaged.*delete it"):
        has_ended(tmp_path)


def test_run_times_are_read_exactly_as_written(tmp_path: Path) -> None:
    assert read_run_time(tmp_path / "run") is None
    for seconds in (RunTime(0.1 + 0.2, 1 / 3), RunTime(7.0, None)):
        write_run_time(tmp_path / "run", seconds)
        assert read_run_time(tmp_path / "run") == seconds
    # It is no part of the transcript.
    assert seconds_path(tmp_path).parent == tmp_path


def test_a_sum_with_an_unmeasured_processor_time_is_unmeasured() -> None:
    assert RunTime(1.0, 0.5) + RunTime(2.0, 0.25) == RunTime(3.0, 0.75)
    assert RunTime(1.0, 0.5) + RunTime(2.0, None) == RunTime(3.0, None)
    assert RunTime(1.0, None) + RunTime(2.0, 0.5) == RunTime(3.0, None)


@pytest.mark.parametrize(("wall", "cores"), [(-0.1, 0.0), (1.0, -0.1), (nan, None), (1.0, inf)])
def test_refuses_negative_and_infinite_times(wall: float, cores: float) -> None:
    with pytest.raises(ValueError, match=r"must be (0 or more|a finite number)"):
        RunTime(wall, cores)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        '{"wall": 1.0}',
        '{"wall": -1.0, "cores": 1.0}',
        '{"wall": NaN, "cores": 1.0}',
        '{"wall": 1e999, "cores": null}',
        '{"wall": 1.0, "wall": 2.0, "cores": null}',
        '{"wall": "1.0", "cores": null}',
        '{"wall": 1.0, "cores": null, "seed": 3}',
        "\xff\xfe",
    ],
)
def test_a_damaged_file_is_reported_with_a_remedy(tmp_path: Path, content: str) -> None:
    seconds_path(tmp_path).write_bytes(content.encode("latin-1"))
    with pytest.raises(TranscriptError, match=r"seconds\.json is damaged: .*delete it"):
        read_run_time(tmp_path)


def test_a_folder_in_its_place_is_reported(tmp_path: Path) -> None:
    seconds_path(tmp_path).mkdir()
    with pytest.raises(TranscriptError, match=r"seconds\.json cannot be read"):
        read_run_time(tmp_path)


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("Learning_Rate", "learning-rate"),
        ("train.lr", "lr"),
        ("client/lr", "lr"),
        ("server.lr", ""),
        ("evaluate/batch_size", ""),
    ],
)
def test_names_are_compared_by_their_last_part(name: str, plain: str):
    assert plain_name(name) == plain


@pytest.mark.parametrize(
    ("key", "value", "parsed"),
    [
        ("rate", "0.5", 0.5),
        ("rate", 0, None),
        ("rate", "1e400", None),
        ("rate", True, None),
        ("epochs", "4", 4.0),
        ("epochs", 0.5, None),
        ("batch", -1, None),
        ("momentum", 1.0, None),
        ("weight_decay", 0, 0.0),
        ("optimizer", "AdamW", "adamw"),
        ("optimizer", 3, None),
        ("rate", [0.1], None),
    ],
)
def test_impossible_values_are_none(key: str, value: object, parsed: object):
    assert parse_setting(key, value) == parsed


def test_only_settings_of_the_training_are_written(tmp_path: Path):
    text = run_config_text({"lr": 0.1, "password": "x", "optimizer": "a" * 65, "epochs": 2})
    (tmp_path / "run_config.json").write_text(text)
    assert read_run_config(tmp_path) == {"lr": 0.1, "epochs": 2}
    assert run_config_text({"password": "x"}) == ""


def test_a_recording_without_the_file_states_nothing(tmp_path: Path):
    assert read_run_config(tmp_path) == {}


@pytest.mark.parametrize("text", ["{", "[" * 100_000])
def test_a_damaged_file_is_an_error_of_the_recording(tmp_path: Path, text: str):
    (tmp_path / "run_config.json").write_text(text)
    with pytest.raises(TranscriptError, match=r"run_config\.json is damaged"):
        read_run_config(tmp_path)


WEIGHTS = {"w": torch.zeros(1)}


SENT, REPLY, LOST = Broadcast(WEIGHTS), Update(WEIGHTS), MissingReply("it failed")


ONE, TWO = client(0), client(1)


def count(*messages: tuple[int, Party, MessageBody]) -> RequestedRounds:
    return count_requested_rounds(
        Transcript(
            tuple(
                Message(
                    number,
                    sender,
                    frozenset({ONE, TWO} if sender == SERVER else {SERVER}),
                    body,
                )
                for number, sender, body in messages
            )
        ),
        (SERVER, ONE, TWO),
    )


def test_the_closing_model_asks_nobody() -> None:
    found = count((0, SERVER, SENT), (0, ONE, REPLY), (0, TWO, REPLY), (1, SERVER, SENT))
    assert found == RequestedRounds(rounds=1, most=1, clients=2, share=1.0)
    assert found.are_all_requested


def test_rounds_without_a_stored_reply_count() -> None:
    found = count(
        (0, SERVER, SENT), (0, ONE, LOST), (0, TWO, REPLY),
        (1, SERVER, SENT),  # nothing came back
        (2, SERVER, SENT), (2, ONE, REPLY), (2, TWO, LOST),
    )  # fmt: skip
    assert (found.rounds, found.most) == (3, 2)
    # Four of six replies were asked for as far as is known.
    assert found.share == 4 / 6
    assert not found.are_all_requested


def test_the_clients_behind_an_aggregate_were_asked() -> None:
    behind = Aggregate(WEIGHTS, frozenset({ONE, TWO}))
    found = count((0, COHORT, behind), (1, ONE, REPLY), (1, ONE, Evaluation({})))
    assert found == RequestedRounds(rounds=2, most=2, clients=2, share=3 / 4)


def test_a_recording_without_messages_has_asked_nobody() -> None:
    assert count() == RequestedRounds(rounds=0, most=0, clients=2, share=1.0)
