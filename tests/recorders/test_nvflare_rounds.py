"""Tasks and results of NVFlare become rounds of a transcript."""

from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("nvflare")

from nvflare.apis.dxo import DXO, DataKind, MetaKey
from nvflare.apis.shareable import Shareable, make_reply

from overheard.archive.reader import open_transcript
from overheard.core.accounting.composed_steps import NoisySteps
from overheard.core.accounting.stated_steps import read_stated_steps, write_steps
from overheard.core.messages import (
    Broadcast,
    Evaluation,
    Message,
    MissingReply,
    UnstoredMessage,
    Update,
)
from overheard.core.parties import SERVER, Party
from overheard.core.recipe import Recipe
from overheard.recorders.async_writer import AsyncWriter
from overheard.recorders.nvflare import RecordingWidget
from overheard.recorders.nvflare_contents import read_site_answer
from overheard.recorders.nvflare_rounds import NO_ANSWER, NvflareRoundRecorder, site_party
from overheard.recorders.replies.reply_reading import AS_WEIGHTS, ReplyReading
from overheard.recorders.run_info import RunInfo
from overheard.report.show import show

ONE, TWO = Party("client/one"), Party("client/two")
START = np.array([1.0, 2.0], np.float32)


def task(number: int | None, weights: np.ndarray = START) -> Shareable:
    """Make a task with the global model."""
    sent = DXO(DataKind.WEIGHTS, {"w": weights}).to_shareable()
    if number is not None:
        sent.set_header("current_round", number)
    return sent


def result(kind: str, **meta: object) -> Shareable:
    """Make a site's reply."""
    return DXO(kind, {"w": np.array([1.5, 2.5], np.float32)}, meta).to_shareable()


def broken() -> Shareable:
    """Make a reply with invalid headers."""
    reply = Shareable()
    reply["__headers__"] = "patient 7"
    return reply


class Recording:
    """A recorder driven by hand, and its transcript."""

    def __init__(
        self, folder: Path, reading: ReplyReading = AS_WEIGHTS, recipe: Recipe | None = None
    ) -> None:
        self.folder = folder
        self.rounds = NvflareRoundRecorder(
            AsyncWriter(folder, RunInfo("nvflare")),
            SERVER,
            sizes=str(MetaKey.NUM_STEPS_CURRENT_ROUND),
            keep_error_texts=False,
            reading=reading,
            recipe=recipe,
        )

    def ask(self, number: int | None, *sites: Party, weights: np.ndarray = START) -> None:
        for client in sites:
            name = f"{client} {number} {weights.tolist()}"
            self.rounds.record_task(name, client, task(number, weights), (ONE, TWO))

    def answer(
        self, number: int | None, client: Party, reply: Shareable, weights: np.ndarray = START
    ) -> None:
        self.rounds.record_result(f"{client} {number} {weights.tolist()}", reply)

    def messages(self) -> tuple[Message, ...]:
        self.rounds.close()
        return tuple(open_transcript(self.folder).messages)


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    return Recording(tmp_path / "run")


def test_records_weights_as_differences_from_the_broadcast(recording: Recording) -> None:
    recording.ask(0, ONE, TWO)
    recording.answer(0, ONE, result(DataKind.WEIGHTS))
    recording.answer(0, TWO, result(DataKind.WEIGHT_DIFF))
    _, weights, difference = (message.body for message in recording.messages())
    assert weights.delta["w"].tolist() == [0.5, 0.5]
    assert difference.delta["w"].tolist() == [1.5, 2.5]


def test_copies_arrays_on_arrival(recording: Recording) -> None:
    start, local = START.copy(), result(DataKind.WEIGHTS)
    recording.ask(0, ONE, weights=start)
    name = f"{ONE} 0 {start.tolist()}"
    recording.rounds.record_result(name, local)
    start += 9
    local["DXO"]["data"]["w"] += 9
    sent, answer = (message.body for message in recording.messages())
    assert sent.weights["w"].tolist() == [1, 2]
    assert answer.delta["w"].tolist() == [0.5, 0.5]


def test_a_broadcast_lists_readers_that_fetch_it_after_a_reply(
    recording: Recording,
) -> None:
    recording.ask(0, ONE)
    recording.answer(0, ONE, result(DataKind.WEIGHTS))
    recording.ask(0, TWO)
    sent, _, missing = recording.messages()
    assert sent.readers == {ONE, TWO}
    assert (missing.sender, missing.body) == (TWO, MissingReply(NO_ANSWER))


def test_updates_are_relative_to_the_sites_own_model(recording: Recording) -> None:
    other = START + 1
    recording.ask(0, ONE)
    recording.ask(0, TWO, weights=other)
    recording.answer(0, TWO, result(DataKind.WEIGHTS), other)
    bodies = {m.sender: m for m in recording.messages() if isinstance(m.body, Update)}
    update = bodies[TWO].body
    assert update.delta["w"].tolist() == [-0.5, -0.5]


def test_a_late_reply_stays_missing(recording: Recording) -> None:
    recording.ask(0, ONE)
    recording.rounds.end_round()
    recording.answer(0, ONE, result(DataKind.WEIGHTS))
    recording.ask(1, ONE)
    recording.answer(0, ONE, result(DataKind.WEIGHTS))
    recording.answer(1, ONE, result(DataKind.WEIGHTS))
    replies = [(m.round, type(m.body)) for m in recording.messages() if m.sender == ONE]
    assert replies == [(0, MissingReply), (0, UnstoredMessage), (1, Update)]


def test_a_repeated_task_is_recorded_once(recording: Recording) -> None:
    recording.ask(0, ONE)
    recording.ask(0, ONE)
    assert [type(m.body) for m in recording.messages()] == [Broadcast, MissingReply]


def test_without_round_numbers_a_second_task_of_a_site_begins_a_round(
    recording: Recording,
) -> None:
    recording.ask(None, ONE, TWO)
    recording.ask(None, ONE, weights=START + 1)
    sent = [m.round for m in recording.messages() if isinstance(m.body, Broadcast)]
    assert sent == [0, 1]


def test_the_run_closes_with_the_final_model(recording: Recording) -> None:
    recording.ask(0, ONE)
    recording.rounds.record_global_model({"w": START + 3})
    *_, last = recording.messages()
    assert (last.round, last.readers) == (1, frozenset())
    assert last.body.weights["w"].tolist() == [4, 5]


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (make_reply("EXECUTION_EXCEPTION"), "return code EXECUTION_EXCEPTION"),
        (make_reply("patient 7 not found"), "not NVFlare's"),
        (Shareable(), "no DXO"),
        (DXO("COLLECTION", {"a": 1}).to_shareable(), "'COLLECTION'"),
        (
            DXO(DataKind.WEIGHTS, {"w": object()}).to_shareable(),
            "not an array; it may be encrypted",
        ),
        (DXO(DataKind.WEIGHTS, {}).to_shareable(), "has no weights"),
        (DXO(DataKind.WEIGHTS, {"w": np.zeros((2, 2))}).to_shareable(), "(2, 2)"),
        (DXO(DataKind.WEIGHTS, {"w": np.array([np.nan, 0])}).to_shareable(), "NaN"),
        (Shareable({"DXO": 3}), "no DXO"),
        (broken(), "cannot be read (ValueError)"),
    ],
)
def test_records_unreadable_replies_as_missing_or_unstored_with_the_reason(
    recording: Recording, reply: Shareable, reason: str
) -> None:
    recording.ask(0, ONE)
    recording.answer(0, ONE, reply)
    body = recording.messages()[1].body
    is_error = "code" in reason or "NVFlare" in reason
    assert isinstance(body, MissingReply if is_error else UnstoredMessage)
    assert reason in body.reason
    assert "patient" not in body.reason


def test_a_tensor_that_is_not_sent_counts_as_unchanged(recording: Recording) -> None:
    two = DXO(DataKind.WEIGHTS, {"w": START, "v": START}).to_shareable()
    recording.rounds.record_task("a", ONE, two, (ONE,))
    recording.rounds.record_result("a", result(DataKind.WEIGHT_DIFF))
    body = recording.messages()[1].body
    assert body.delta["w"].tolist() == [1.5, 2.5]
    assert torch.equal(body.delta["v"], torch.zeros(2))


def test_omits_metadata_with_invalid_names_or_values(
    recording: Recording,
) -> None:
    recording.ask(0, ONE)
    meta = {
        "NUM_STEPS_CURRENT_ROUND": -4,
        "loss": np.float32(0.5),
        "deep": {"er": 2},
        "text": "hello",
        "bad": float("nan"),
        "huge": 10**400,
        "<script>\x1b": 1.0,
    }
    recording.answer(0, ONE, result(DataKind.WEIGHTS, **meta))
    body = recording.messages()[1].body
    assert isinstance(body, Update)
    assert body.examples is None
    assert body.metrics == {"loss": 0.5, "deep.er": 2.0}


def test_metrics_alone_are_an_evaluation(recording: Recording) -> None:
    recording.ask(0, ONE)
    reply = DXO(DataKind.METRICS, {"accuracy": 0.25}, {"NUM_STEPS_CURRENT_ROUND": 8})
    recording.answer(0, ONE, reply.to_shareable())
    assert recording.messages()[1].body == Evaluation({"accuracy": 0.25}, 8)


def test_an_encrypted_model_is_not_stored(recording: Recording) -> None:
    sent = DXO(DataKind.WEIGHTS, {"w": object()}).to_shareable()
    recording.rounds.record_task("a", ONE, sent, (ONE,))
    recording.rounds.record_result("a", result(DataKind.WEIGHTS))
    assert [type(m.body) for m in recording.messages()] == [UnstoredMessage, UnstoredMessage]


@pytest.mark.parametrize("name", ["../etc", "a/b", "a\x1b[31m", "", "x" * 65, "<b>"])
def test_an_invalid_file_name_becomes_a_fixed_digest(name: str) -> None:
    assert site_party(name) == site_party(name)
    assert site_party(name).startswith("client/renamed-")
    assert site_party(name) != site_party(name + "!")


@pytest.mark.parametrize(
    ("reading", "sent", "delta"),
    [
        (ReplyReading("differences"), [0.5, 1.0], [0.5, 1.0]),
        (ReplyReading("gradients", 0.5), [2.0, -4.0], [-1.0, 2.0]),
        (ReplyReading("differences", scales=0.25), np.array([4, -8], np.int8), [1.0, -2.0]),
        (ReplyReading("differences", scales="step"), np.array([4, -8], np.int8), [2.0, -4.0]),
        (ReplyReading("differences", scales="steps"), np.array([4, -8], np.int8), [4.0, -8.0]),
    ],
)
def test_the_owner_of_a_run_says_what_results_hold(
    tmp_path: Path, reading: ReplyReading, sent: object, delta: list[float]
) -> None:
    recording = Recording(tmp_path, reading)
    recording.ask(0, ONE)
    numbers = sent if isinstance(sent, np.ndarray) else np.array(sent, np.float32)
    meta = {"step": 0.5, "steps": {"w": 1.0}}
    recording.answer(0, ONE, DXO(DataKind.WEIGHTS, {"w": numbers}, meta).to_shareable())
    body = recording.messages()[1].body
    assert body.delta["w"].tolist() == delta


def test_codes_without_a_scale_are_not_stored(recording: Recording) -> None:
    recording.ask(0, ONE)
    codes = DXO(DataKind.WEIGHTS, {"w": np.array([4, -8], np.int8)}, {"loss": 0.5})
    recording.answer(0, ONE, codes.to_shareable())
    body = recording.messages()[1].body
    assert (body.kind, body.metrics) == ("codes", {"loss": 0.5})


@pytest.mark.parametrize(
    ("unit", "recipe", "examples"),
    [
        ("examples", None, 12),
        ("unknown", Recipe(rate=0.1, epochs=3, batch=8), None),
        ("steps", None, None),
        # 12 steps in 3 epochs are 4 batches of 8.
        ("steps", Recipe(rate=0.1, epochs=3, batch=8), 32),
    ],
)
def test_steps_are_not_taken_for_examples(
    tmp_path: Path, unit: str, recipe: Recipe | None, examples: int | None
) -> None:
    recording = Recording(tmp_path, ReplyReading(count_unit=unit), recipe)
    recording.ask(0, ONE)
    recording.answer(0, ONE, result(DataKind.WEIGHTS, NUM_STEPS_CURRENT_ROUND=12))
    body = recording.messages()[1].body
    assert isinstance(body, Update)
    assert body.examples == examples
    assert body.metrics == ({} if unit == "examples" else {"NUM_STEPS_CURRENT_ROUND": 12.0})


def test_nobody_stated_what_nvflares_own_key_counts() -> None:
    assert RecordingWidget("run")._recorder._reading.count_unit == "unknown"
    assert RecordingWidget("run", sizes="n")._recorder._reading.count_unit == "examples"
    assert RecordingWidget("run", count_unit="steps")._recorder._reading.count_unit == "steps"
    with pytest.raises(ValueError, match="rate is what the server"):
        RecordingWidget("run", kind="gradients")


def test_a_result_begins_from_the_model_of_the_round_that_it_tells(tmp_path: Path) -> None:
    recording = Recording(tmp_path, ReplyReading(began_in="began"))
    for number, weights in enumerate((START, START + 7)):
        recording.ask(number, ONE, weights=weights)
        recording.answer(number, ONE, result(DataKind.WEIGHTS, began=0), weights)
    recording.ask(2, ONE, weights=START + 9)
    recording.answer(2, ONE, result(DataKind.WEIGHTS, began=5), START + 9)
    recording.ask(3, ONE)
    recording.answer(3, ONE, result(DataKind.WEIGHTS))
    bodies = [one.body for one in recording.messages() if one.sender == ONE]
    first, second, unknown, untold = bodies
    assert first.delta["w"].tolist() == second.delta["w"].tolist() == [0.5, 0.5]
    assert isinstance(unknown, UnstoredMessage)
    assert unknown.reason == "it began in round 5, whose model is not kept"
    assert isinstance(untold, UnstoredMessage)
    assert untold.reason == "it does not tell the round that it began in, 'began'"


@pytest.mark.parametrize(
    "counts", [[3, 0, 5], {"cat": 3, "dog": 5}, "[3, 0, 5]", np.array([3, 5])]
)
def test_a_histogram_of_labels_in_metadata_is_named_as_one(
    recording: Recording, counts: object
) -> None:
    recording.ask(0, ONE)
    meta = {"NUM_STEPS_CURRENT_ROUND": 8, "label_counts": counts, "hospital": "St. Mary"}
    recording.answer(0, ONE, result(DataKind.WEIGHTS, **meta))
    body = recording.messages()[1].body
    assert isinstance(body, Update)
    assert sum(body.metrics.values()) == 8
    assert body.texts == ("hospital",)
    name, text = show(recording.folder).facts[0]
    assert name == "told"
    assert text.startswith("label_counts is a histogram of labels in clear text")


def test_weights_that_are_encrypted_are_read_by_nobody(recording: Recording) -> None:
    recording.ask(0, ONE)
    meta = {MetaKey.PROCESSED_ALGORITHM: "CKKS", MetaKey.NUM_STEPS_CURRENT_ROUND: 8}
    recording.answer(0, ONE, DXO(DataKind.WEIGHTS, {"w": b"secret"}, meta).to_shareable())
    body = recording.messages()[1].body
    assert (body.kind, body.examples) == ("masked", 8)
    assert (
        "No party can read another party's individual updates."
        in show(recording.folder).readers
    )


def test_a_result_of_another_task_is_listed_with_its_numbers(recording: Recording) -> None:
    recording.ask(0, ONE)
    counts = DXO(DataKind.ANALYTIC, {"label_counts": [3, 5]}, {"NUM_STEPS_CURRENT_ROUND": 8})
    recording.rounds.list_result("fed_stats", TWO, counts.to_shareable())
    recording.rounds.list_result("submit_model", TWO, result(DataKind.WEIGHTS))
    recording.rounds.list_result("fed_stats", TWO, make_reply("EXECUTION_EXCEPTION"))
    listed = [m for m in recording.messages() if isinstance(m.body, UnstoredMessage)]
    assert [(m.sender, m.readers) for m in listed] == [(TWO, {SERVER})] * 2
    stats, model = (m.body for m in listed)
    assert isinstance(stats, UnstoredMessage)
    assert stats.reason == "it is the result of the task 'fed_stats'"
    assert stats.metrics == {"label_counts[0]": 3.0, "label_counts[1]": 5.0}
    assert (model.kind, model.metrics) == ("weights", {})
    assert show(recording.folder).facts[0][0] == "told"


def test_the_steps_that_a_site_states_in_its_metadata_are_recorded() -> None:
    steps = NoisySteps(1.0, "poisson", 0.1, 10)
    reply = result(DataKind.WEIGHT_DIFF, **write_steps([steps], 1, 1.0, "rdp"))
    made = read_site_answer(reply, "", AS_WEIGHTS, keep_error_texts=False)
    body = made.make_body({"w": torch.from_numpy(START)})
    assert isinstance(body, Update)
    found = read_stated_steps(body.metrics)
    assert found is not None
    assert (found.steps, found.accountant) == ((steps,), "rdp")
