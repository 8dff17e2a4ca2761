"""The latest rounds of a recording that still grows."""

from hashlib import blake2b
from pathlib import Path
from time import time
from typing import final

from overheard.archive.layout import (
    manifest_path,
    messages_path,
    path_exists,
    transcript_folder,
)
from overheard.archive.manifest import read_manifest
from overheard.archive.reader import read_round
from overheard.archive.run_end import has_ended
from overheard.auditing.recording import has_update
from overheard.core.errors import TranscriptError
from overheard.core.messages import Message
from overheard.core.parties import Party, parse_party
from overheard.core.transcript import Transcript
from overheard.disk.reading import read_json_text


@final
class GrowingRecording:
    """The messages of the latest rounds of a recording; earlier ones are dropped.

    Weights stay on the disk. So memory grows with the messages of `most_rounds` rounds, and not
    with the length of the run.

    Args:
        folder: the folder of the recording, which need not exist yet.
        most_rounds: the most rounds with updates that are kept.

    """

    def __init__(self, folder: Path, most_rounds: int) -> None:
        self._folder = folder
        self._most_rounds = most_rounds
        self._messages = dict[int, tuple[Message, ...]]()
        self._with_updates = list[int]()
        self._next = 0
        self._last_digest = b""
        self._parties = set[Party]()
        self._rounds = 0

    @property
    def rounds(self) -> int:
        """The number of rounds with updates so far, those dropped included."""
        return self._rounds

    @property
    def newest(self) -> int:
        """The number of the latest round with updates; -1 = there is none."""
        return self._with_updates[-1] if self._with_updates else -1

    @property
    def parties(self) -> frozenset[Party]:
        """The parties that the manifest names, and those of all rounds so far."""
        return frozenset(self._parties)

    def has_ended(self) -> bool:
        """Return whether no further round will be recorded, as far as the recording says."""
        return self._has_begun() and has_ended(self._folder)

    def seconds_since_newest(self) -> float:
        """Return the seconds since the latest round with updates was committed, 0 or more."""
        path = messages_path(self._transcript, self.newest)
        return max(0.0, time() - path.stat().st_mtime)

    def transcript(self) -> Transcript:
        """Return the messages of the kept rounds."""
        return Transcript(tuple(one for each in self._messages.values() for one in each))

    def read_new_rounds(self) -> bool:
        """Read what was committed since the last call; return whether updates are among it.

        A recorder may commit a round with the evaluations of its model, and once more with the
        updates. So the last round is read again if its list of messages changed.

        Raises:
            TranscriptError: if the recording is damaged.

        """
        if not self._has_begun():
            return False
        if not self._next:
            self._parties.update(map(parse_party, read_manifest(self._folder).parties))
        has_news = False
        if self._next and self._has_changed(self._next - 1):
            self._next -= 1
            self._forget(self._next)
        while path_exists(messages_path(self._transcript, self._next)):
            self._last_digest = self._digest(self._next)
            has_news |= self._read(self._next)
            self._next += 1
        return has_news

    def _has_begun(self) -> bool:
        return path_exists(manifest_path(self._transcript))

    @property
    def _transcript(self) -> Path:
        return transcript_folder(self._folder)

    def _has_changed(self, number: int) -> bool:
        """Return whether the list of messages differs from the one that was read last."""
        path = messages_path(self._transcript, number)
        # A recorder commits a round a second time, mostly with the same messages.
        return not path_exists(path) or self._digest(number) != self._last_digest

    def _digest(self, number: int) -> bytes:
        content = read_json_text(
            messages_path(self._transcript, number), TranscriptError, inside=self._transcript
        )
        return blake2b(content, digest_size=12).digest()

    def _read(self, number: int) -> bool:
        """Read a round, and drop the oldest; return whether it has updates."""
        messages = self._messages[number] = read_round(self._folder, number)
        self._parties.update(Transcript(messages).parties())
        if not any(map(has_update, messages)):
            return False
        self._with_updates.append(number)
        self._rounds += 1
        oldest = self._with_updates[-self._most_rounds :][0]
        self._with_updates = self._with_updates[-self._most_rounds :]
        for dropped in [one for one in self._messages if one < oldest]:
            del self._messages[dropped]
        return True

    def _forget(self, number: int) -> None:
        """Forget a round that is not committed any more as it was read."""
        self._messages.pop(number, None)
        if number in self._with_updates:
            self._with_updates.remove(number)
            self._rounds -= 1
