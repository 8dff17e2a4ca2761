"""No reply of a client costs it the record of its other ones, or changes what it sends."""

from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="the extra flower is not installed")

from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, Metadata, RecordDict
from flwr.app.message.message import make_message

from overheard.archive.reader import open_transcript, verify_transcript
from overheard.core.messages import UnstoredMessage, Update
from overheard.recorders.flower import recording_mod
from tests.hostile.flower_replies import (
    Arrays,
    HostileReply,
    as_server,
    flower_replies,
    model_of,
    plain,
)

NODE, RUN = 11, 7

HONEST = HostileReply(lambda request, model: [plain(request, model)], "recorded")


def request(model: Arrays, number: int) -> Message:
    arrays = ArrayRecord({name: Array(one + number) for name, one in model.items()})
    content = RecordDict({"arrays": arrays, "config": ConfigRecord({"server-round": number})})
    return make_message(
        Metadata(RUN, f"m{number}", 1, NODE, "", "", 1000.0, 60.0, "train"), content
    )


# A recording is opened anew for each message, which takes long.
@pytest.mark.parametrize("step", [8, pytest.param(1, marks=pytest.mark.nightly)])
def test_a_client_records_every_reply_beside_hostile_ones(tmp_path: Path, step: int) -> None:
    model = model_of(1000)
    # From the sixth one on: a reply of another kind than its request is then one of them.
    hostile = dict(list(flower_replies(20_000).items())[5 % step :: step])
    kinds = {"first": HONEST, **hostile, "last": HONEST}
    mod = recording_mod(tmp_path)
    with as_server():
        for number, kind in enumerate(kinds.values()):
            asked = request(model, number)
            sent = kind.make(asked, model)[0]
            context = Context(RUN, NODE, {}, RecordDict(), {})
            assert mod(asked, context, lambda *_, sent=sent: sent) is sent
    folder = tmp_path / f"run-{RUN}-node-{NODE}"
    verify_transcript(folder)
    messages = open_transcript(folder).messages
    wrong = []
    for number, (name, kind) in enumerate(kinds.items()):
        bodies = [
            one.body for one in messages if one.round == number and one.sender != "server"
        ]
        expected = UnstoredMessage if kind.outcome == "unrecorded" else Update
        if sum(isinstance(one, expected) for one in bodies) != 1:
            wrong.append((name, bodies))
    assert not wrong
