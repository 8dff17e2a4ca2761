"""The check of a recording while it is written: it warns once, and changes nothing."""

import logging
from collections.abc import Sequence
from typing import final

from overheard.archive.manifest import Manifest
from overheard.consistency.check import RecordingCheck
from overheard.consistency.statement import state_step
from overheard.core.messages import Message

_LOG = logging.getLogger("overheard")


@final
class RoundCheck:
    """Checks the rounds of a recording, and logs once that they contradict what is stated.

    The result of the check is not stored, as a recording must not vouch for itself. An error of
    the check ends the check alone.

    Args:
        manifest: the description of the run.

    """

    def __init__(self, manifest: Manifest) -> None:
        """Begin before the first round."""
        self._check: RecordingCheck | None = RecordingCheck(state_step(manifest))
        self._rounds = 0
        self._next = 2

    def add(self, messages: Sequence[Message]) -> None:
        """Add a round, and look at the result after 2, 3, 4, 6, 9, ... rounds."""
        if self._check is None:
            return
        # No error of the check may end the recording.
        try:
            self._check.add(messages)
            self._rounds += 1
            if self._rounds >= self._next:
                self._next = max(self._rounds + 1, self._rounds * 3 // 2)
                self.warn()
        except Exception as error:
            self._check = None
            _LOG.debug("overheard: error while checking the recording", exc_info=error)

    def warn(self) -> None:
        """Log a warning if the rounds so far contradict what is stated; only the first time."""
        if self._check is None:
            return
        try:
            proof = self._check.result()
        except Exception as error:
            self._check = None
            _LOG.debug("overheard: error while checking the recording", exc_info=error)
            return
        if proof.is_refused:
            self._check = None
            found = " ".join(proof.sentences[:3])
            _LOG.warning(
                "overheard: what is recorded contradicts itself, so attacks on it will be "
                "refused; the recording goes on. %s",
                found,
            )
