"""A truth about clients that did not take part is refused, with what to do."""

from pathlib import Path

import pytest
import torch

from overheard.archive.truth import write_truth
from overheard.auditing.recorded_truth import compare_counts, read_recorded_truth
from overheard.core.errors import TranscriptError
from overheard.core.examples import Examples
from overheard.core.facts import Facts
from overheard.core.messages import Aggregate, Broadcast, Message, MissingReply, Update
from overheard.core.parties import COHORT, SERVER, Party, client
from overheard.core.transcript import Transcript
from overheard.core.true_facts.label_counts import LabelCounts
from overheard.core.truth import GroundTruth
from overheard.data.partition.data_partition import DataPartition

WEIGHTS = {"b": torch.zeros(2)}
NONE = Examples(torch.zeros(0, 1), torch.zeros(0, dtype=torch.int64))
NOBODY = DataPartition(NONE, (), NONE, NONE, {})
TO_SERVER = frozenset({SERVER})


def broadcast(number: int) -> Message:
    return Message(number, SERVER, frozenset({COHORT}), Broadcast(WEIGHTS))


def update(number: int, sender: Party) -> Message:
    return Message(number, sender, TO_SERVER, Update(WEIGHTS, 4))


def truth_of(*keys: tuple[int, Party]) -> GroundTruth:
    return GroundTruth(Facts(LabelCounts({key: torch.tensor([3, 1]) for key in keys})))


def read(folder: Path, messages: list[Message], *keys: tuple[int, Party]) -> GroundTruth | None:
    write_truth(folder, truth_of(*keys))
    run = Transcript(tuple(messages))
    return read_recorded_truth(folder, run, 2, NOBODY, is_external=True)


def test_refuses_counts_of_a_client_in_a_round_in_which_it_did_not_take_part(tmp_path: Path):
    run = [broadcast(0), update(0, client(0)), update(0, client(1)), update(1, client(0))]
    known = ((0, client(0)), (0, client(1)), (1, client(0)))
    assert read(tmp_path, run, *known) is not None
    with pytest.raises(TranscriptError, match="client/1 in round 1, but in that round only"):
        read(tmp_path, run, *known, (1, client(1)))


def test_takes_counts_of_a_client_whose_update_arrived_but_was_not_recorded(tmp_path: Path):
    lost = Message(0, client(1), TO_SERVER, MissingReply("not recorded: it is a tree"))
    late = Message(0, client(2), TO_SERVER, MissingReply("late"))
    run = [broadcast(0), update(0, client(0)), lost, late]
    assert read(tmp_path, run, (0, client(0)), (0, client(1))) is not None
    with pytest.raises(TranscriptError, match="client/2 in round 0"):
        read(tmp_path, run, (0, client(0)), (0, client(2)))


def test_takes_counts_of_any_client_where_only_global_models_were_recorded(tmp_path: Path):
    assert read(tmp_path, [broadcast(0), broadcast(1)], (0, client(7))) is not None
    with pytest.raises(TranscriptError, match="round 2, but the rounds of the run are 0 to 1"):
        read(tmp_path, [broadcast(0), broadcast(1)], (2, client(7)))


def test_takes_counts_of_the_clients_of_a_mean(tmp_path: Path):
    mean = Message(0, SERVER, TO_SERVER, Aggregate(WEIGHTS, frozenset({client(0), client(1)})))
    run = [broadcast(0), mean]
    assert read(tmp_path, run, (0, client(0)), (0, client(1))) is not None
    with pytest.raises(TranscriptError, match="client/2 in round 0"):
        read(tmp_path, run, (0, client(2)))


def test_tells_of_a_reply_that_reports_another_number_of_examples(tmp_path: Path):
    write_truth(tmp_path, truth_of((0, client(0))))
    assert compare_counts(tmp_path, Transcript((update(0, client(0)),))) == ()
    other = Message(0, client(0), TO_SERVER, Update(WEIGHTS, 9))
    (sentence,) = compare_counts(tmp_path, Transcript((other,)))
    assert "states 4 examples of client/0 in round 0, but its reply reports 9" in sentence
    hidden = Message(0, client(0), TO_SERVER, Update(WEIGHTS, None))
    assert compare_counts(tmp_path, Transcript((hidden,))) == ()
    assert compare_counts(tmp_path / "none", Transcript((other,))) == ()
