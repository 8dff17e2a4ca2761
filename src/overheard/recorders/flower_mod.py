"""Records what one Flower client reads and sends, for whoever listens there."""

import logging
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import final

import torch
from flwr.app import Context, Message
from flwr.clientapp.typing import ClientAppCallable, Mod

from overheard.archive.layout import (
    committed_rounds,
    is_there,
    manifest_path,
    messages_path,
    transcript_folder,
)
from overheard.archive.manifest import read_manifest
from overheard.archive.reader import read_round
from overheard.core.messages import Broadcast, Update
from overheard.recorders.facts import Facts
from overheard.recorders.flower_arrays import Decoder, Parts, parts_of
from overheard.recorders.flower_contents import SIZES
from overheard.recorders.flower_defenses import defense_records
from overheard.recorders.flower_rounds import FlowerRounds, is_recorded
from overheard.recorders.scribe import Scribe

_LOG = logging.getLogger("overheard")


def recording_mod(
    folder: Path | str,
    *,
    model: str = "",
    defenses: Iterable[object] = (),
    examples_key: str = "",
    keep_error_texts: bool = False,
) -> Mod:
    """A mod that records what this client reads and sends: the view of a curious participant.

    Each node of each run has its own transcript, `FOLDER/run-<run id>-node-<node id>`, whose
    parties are the server and the node. It goes on over processes, of which Flower may start
    one a message. As the first mod of a function it records what leaves the client; what stands
    behind it, such as noise, has acted by then.

    Whatever goes wrong in recording is logged, and the client answers as it would without. The
    answer waits until it is on the disk, since Flower may end the process right after.

    Args:
        folder: for the transcripts.
        model: the architecture, in words; "" = not told.
        defenses: in force: Flower's strategies and mods, or records made by hand.
        examples_key: under which name clients tell how many examples they trained on, if it is
            not Flower's "num-examples".
        keep_error_texts: whether to record what errors say, and not only of which kind they
            are.

    """
    facts = Facts(f"flwr {version('flwr')}", model, defenses=defense_records(defenses))
    sizes = (examples_key, *SIZES) if examples_key else SIZES

    def record(message: Message, context: Context, call_next: ClientAppCallable) -> Message:
        if not is_recorded(message):
            return call_next(message, context)
        told = message.metadata
        home = Path(folder) / f"run-{told.run_id:d}-node-{told.dst_node_id:d}"
        note = _Note(home, facts, sizes, keep_error_texts=keep_error_texts)
        try:
            note.asked(message)
            reply = call_next(message, context)
            note.came(reply)
            return reply
        finally:
            note.close()

    return record


@final
class _Note:
    """One message and its answer, written down; never raises."""

    def __init__(
        self, folder: Path, facts: Facts, sizes: tuple[str, ...], *, keep_error_texts: bool
    ) -> None:
        self._folder = folder
        self._scribe = Scribe(folder, facts, goes_on=True)
        self._sizes = sizes
        self._keeps_error_texts = keep_error_texts
        self._rounds: FlowerRounds | None = None

    def asked(self, message: Message) -> None:
        """Have the model written while the client trains it."""
        try:
            rounds = FlowerRounds(
                self._scribe,
                sizes=self._sizes,
                keep_error_texts=self._keeps_error_texts,
                decoder=Decoder(_left_out(self._folder)),
            )
            self._go_on(rounds, parts_of(message.content))
            rounds.asked((message,))
            rounds.announce()
            self._rounds = rounds
        except Exception as error:
            self._stop(error)

    def came(self, reply: Message) -> None:
        """Note what the client is about to send."""
        try:
            if self._rounds is not None:
                self._rounds.came((reply,))
        except Exception as error:
            self._stop(error)

    def close(self) -> None:
        """Wait until all is on the disk."""
        try:
            if self._rounds is not None:
                self._rounds.over()
            self._scribe.close()
        except Exception as error:
            self._stop(error)

    def _go_on(self, rounds: FlowerRounds, parts: Parts) -> None:
        """Open the last round anew if nobody trained in it yet and it is about this model."""
        count = committed_rounds(self._folder)
        if not count:
            return
        said = read_round(self._folder, count - 1)
        models = [one.body.weights for one in said if isinstance(one.body, Broadcast)]
        if not models or any(isinstance(one.body, Update) for one in said):
            return
        here = Decoder(_left_out(self._folder)).model(parts)
        if here.keys() != models[0].keys() or not all(
            torch.equal(weight, models[0][name]) for name, weight in here.items()
        ):
            return
        # From here on the round counts as unsaid, until it is said again and more.
        messages_path(transcript_folder(self._folder), count - 1).unlink()
        rounds.say_again(parts, said)

    def _stop(self, error: Exception) -> None:
        _LOG.debug("overheard: at recording", exc_info=error)
        self._scribe.stop(error)


def _left_out(folder: Path) -> tuple[str, ...]:
    """Tensors that the run's first model had and its transcript has not."""
    if not is_there(manifest_path(transcript_folder(folder))):
        return ()
    return read_manifest(folder).left_out
