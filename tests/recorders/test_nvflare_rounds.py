"""Tasks and results of NVFlare become the rounds that they were."""

from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("nvflare")

from nvflare.apis.dxo import DXO, DataKind, MetaKey
from nvflare.apis.shareable import Shareable, make_reply

from overheard.archive.reader import open_transcript
from overheard.core.messages import Broadcast, Evaluation, Message, Missing, Update
from overheard.core.parties import SERVER, Party
from overheard.recorders.facts import Facts
from overheard.recorders.nvflare_rounds import NO_ANSWER, NvflareRounds, site
from overheard.recorders.scribe import Scribe

ONE, TWO = Party("client/one"), Party("client/two")
START = np.array([1.0, 2.0], np.float32)


def task(number: int | None, weights: np.ndarray = START) -> Shareable:
    """The global model, as a controller sends it."""
    sent = DXO(DataKind.WEIGHTS, {"w": weights}).to_shareable()
    if number is not None:
        sent.set_header("current_round", number)
    return sent


def result(kind: str, **meta: object) -> Shareable:
    """What a site answers."""
    return DXO(kind, {"w": np.array([1.5, 2.5], np.float32)}, meta).to_shareable()


def broken() -> Shareable:
    """An answer whose headers are none."""
    said = Shareable()
    said["__headers__"] = "patient 7"
    return said


class Listening:
    """Rounds that are told by hand, and what came of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rounds = NvflareRounds(
            Scribe(folder, Facts("nvflare")),
            SERVER,
            sizes=str(MetaKey.NUM_STEPS_CURRENT_ROUND),
            keep_error_texts=False,
        )

    def ask(self, number: int | None, *sites: Party, weights: np.ndarray = START) -> None:
        for who in sites:
            name = f"{who} {number} {weights.tolist()}"
            self.rounds.asked(name, who, task(number, weights), (ONE, TWO))

    def answer(
        self, number: int | None, who: Party, said: Shareable, weights: np.ndarray = START
    ) -> None:
        self.rounds.answered(f"{who} {number} {weights.tolist()}", said)

    def messages(self) -> tuple[Message, ...]:
        self.rounds.close()
        return tuple(open_transcript(self.folder).messages)


@pytest.fixture
def listening(tmp_path: Path) -> Listening:
    return Listening(tmp_path / "run")


def test_weights_are_told_as_the_difference_from_what_was_sent(listening: Listening) -> None:
    listening.ask(0, ONE, TWO)
    listening.answer(0, ONE, result(DataKind.WEIGHTS))
    listening.answer(0, TWO, result(DataKind.WEIGHT_DIFF))
    _, whole, difference = (message.body for message in listening.messages())
    assert isinstance(whole, Update)
    assert isinstance(difference, Update)
    assert whole.delta["w"].tolist() == [0.5, 0.5]
    assert difference.delta["w"].tolist() == [1.5, 2.5]


def test_arrays_are_told_as_they_were_when_they_came(listening: Listening) -> None:
    start, local = START.copy(), result(DataKind.WEIGHTS)
    listening.ask(0, ONE, weights=start)
    name = f"{ONE} 0 {start.tolist()}"
    listening.rounds.answered(name, local)
    start += 9
    local["DXO"]["data"]["w"] += 9
    sent, answer = (message.body for message in listening.messages())
    assert isinstance(sent, Broadcast)
    assert isinstance(answer, Update)
    assert sent.weights["w"].tolist() == [1, 2]
    assert answer.delta["w"].tolist() == [0.5, 0.5]


def test_one_broadcast_names_all_who_fetched_it_even_after_an_answer(
    listening: Listening,
) -> None:
    listening.ask(0, ONE)
    listening.answer(0, ONE, result(DataKind.WEIGHTS))
    listening.ask(0, TWO)
    sent, _, missing = listening.messages()
    assert sent.readers == {ONE, TWO}
    assert (missing.sender, missing.body) == (TWO, Missing(NO_ANSWER))


def test_each_site_is_measured_by_what_it_was_sent(listening: Listening) -> None:
    other = START + 1
    listening.ask(0, ONE)
    listening.ask(0, TWO, weights=other)
    listening.answer(0, TWO, result(DataKind.WEIGHTS), other)
    bodies = {m.sender: m for m in listening.messages() if isinstance(m.body, Update)}
    update = bodies[TWO].body
    assert isinstance(update, Update)
    assert update.delta["w"].tolist() == [-0.5, -0.5]


def test_an_answer_that_comes_too_late_stays_missing(listening: Listening) -> None:
    listening.ask(0, ONE)
    listening.rounds.finish()
    listening.answer(0, ONE, result(DataKind.WEIGHTS))
    listening.ask(1, ONE)
    listening.answer(0, ONE, result(DataKind.WEIGHTS))
    listening.answer(1, ONE, result(DataKind.WEIGHTS))
    told = [(m.round, type(m.body)) for m in listening.messages() if m.sender == ONE]
    assert told == [(0, Missing), (1, Update)]


def test_a_task_that_is_sent_again_is_told_once(listening: Listening) -> None:
    listening.ask(0, ONE)
    listening.ask(0, ONE)
    assert [type(m.body) for m in listening.messages()] == [Broadcast, Missing]


def test_rounds_without_numbers_begin_when_a_site_is_asked_again(listening: Listening) -> None:
    listening.ask(None, ONE, TWO)
    listening.ask(None, ONE, weights=START + 1)
    sent = [m.round for m in listening.messages() if isinstance(m.body, Broadcast)]
    assert sent == [0, 1]


def test_the_run_closes_with_the_model_that_it_came_to(listening: Listening) -> None:
    listening.ask(0, ONE)
    listening.rounds.became({"w": START + 3})
    *_, last = listening.messages()
    assert (last.round, last.readers) == (1, frozenset())
    assert isinstance(last.body, Broadcast)
    assert last.body.weights["w"].tolist() == [4, 5]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (make_reply("EXECUTION_EXCEPTION"), "return code EXECUTION_EXCEPTION"),
        (make_reply("patient 7 not found"), "another return code"),
        (Shareable(), "no DXO"),
        (DXO("COLLECTION", {"a": 1}).to_shareable(), "'COLLECTION'"),
        (DXO(DataKind.WEIGHTS, {"w": object()}).to_shareable(), "no array, or encrypted"),
        (DXO(DataKind.WEIGHTS, {}).to_shareable(), "holds no weights"),
        (DXO(DataKind.WEIGHTS, {"w": np.zeros((2, 2))}).to_shareable(), "(2, 2)"),
        (DXO(DataKind.WEIGHTS, {"w": np.array([np.nan, 0])}).to_shareable(), "NaN"),
        (Shareable({"DXO": 3}), "no DXO"),
        (broken(), "cannot be read (ValueError)"),
    ],
)
def test_what_cannot_be_read_is_missing_and_says_why(
    listening: Listening, said: Shareable, reason: str
) -> None:
    listening.ask(0, ONE)
    listening.answer(0, ONE, said)
    body = listening.messages()[1].body
    assert isinstance(body, Missing)
    assert reason in body.reason
    assert "patient" not in body.reason


def test_a_tensor_that_a_site_keeps_back_is_told_as_unchanged(listening: Listening) -> None:
    listening.ask(0, ONE)
    kept = DXO(DataKind.WEIGHT_DIFF, {"another": np.ones(2, np.float32)}).to_shareable()
    listening.answer(0, ONE, kept)
    body = listening.messages()[1].body
    assert isinstance(body, Update)
    assert torch.equal(body.delta["w"], torch.zeros(2))


def test_metadata_that_are_no_numbers_or_have_strange_names_are_left_out(
    listening: Listening,
) -> None:
    listening.ask(0, ONE)
    meta = {
        "NUM_STEPS_CURRENT_ROUND": -4,
        "loss": np.float32(0.5),
        "deep": {"er": 2},
        "text": "hello",
        "bad": float("nan"),
        "huge": 10**400,
        "<script>\x1b": 1.0,
    }
    listening.answer(0, ONE, result(DataKind.WEIGHTS, **meta))
    body = listening.messages()[1].body
    assert isinstance(body, Update)
    assert body.examples is None
    assert body.metrics == {"loss": 0.5, "deep.er": 2.0}


def test_metrics_alone_are_an_evaluation(listening: Listening) -> None:
    listening.ask(0, ONE)
    said = DXO(DataKind.METRICS, {"accuracy": 0.25}, {"NUM_STEPS_CURRENT_ROUND": 8})
    listening.answer(0, ONE, said.to_shareable())
    assert listening.messages()[1].body == Evaluation({"accuracy": 0.25}, 8)


def test_an_encrypted_model_is_not_recorded_and_nothing_breaks(listening: Listening) -> None:
    sent = DXO(DataKind.WEIGHTS, {"w": object()}).to_shareable()
    listening.rounds.asked("a", ONE, sent, (ONE,))
    listening.rounds.answered("a", result(DataKind.WEIGHTS))
    assert [type(m.body) for m in listening.messages()] == [Missing, Missing]


@pytest.mark.parametrize("name", ["../etc", "a/b", "a\x1b[31m", "", "x" * 65, "<b>"])
def test_a_name_unfit_for_a_file_becomes_a_digest_always_the_same(name: str) -> None:
    assert site(name) == site(name)
    assert site(name).startswith("client/renamed-")
    assert site(name) != site(name + "!")
