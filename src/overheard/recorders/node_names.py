"""The names that a Flower app gives to its nodes, stored beside the recording."""

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import final

from overheard.archive.party_names import NAMES_FILE
from overheard.core.parties import Party, client
from overheard.recorders.async_writer import AsyncWriter
from overheard.recorders.reply_values import sanitize_text

PARTITION_KEY = "partition-id"
"""The key under which Flower's simulation tells a node the number of its partition."""

NameSource = str | Mapping[int, str] | Callable[[int], str]
"""The name of a value in replies; or the names by node id; or a function of the node id."""

_LOG = logging.getLogger("overheard")


@final
class NodeNames:
    """Collects the names of nodes, and writes a map from the parties of the transcript to them.

    The names are untrusted: they are cut to a plain line of text, and nothing but the map
    contains them. A function that fails, or returns no text, leaves its node without a name.

    Args:
        source: where names come from.
        writer: writes the map.

    """

    def __init__(self, source: NameSource, writer: AsyncWriter) -> None:
        """Begin without names."""
        self._source = source
        self._writer = writer
        self._names = dict[str, str]()
        self._written = 0
        self._asked = set[int]()

    def add_nodes(self, nodes: Iterable[int]) -> None:
        """Ask for the names of these nodes, if names do not come with replies."""
        if isinstance(self._source, str):
            return
        for node in set(nodes) - self._asked:
            self._asked.add(node)
            name = _ask(self._source, node)
            if name is not None:
                self.add(client(node), name)

    def read_reply(self, node: Party, find: Callable[[str], object]) -> None:
        """Take the name that a reply contains; the first name of a node counts.

        Args:
            node: the sender.
            find: returns the value under a key in the reply; None = it has none.

        """
        if isinstance(self._source, str) and node not in self._names:
            self.add(node, find(self._source))

    def add(self, node: Party, name: object) -> None:
        """Add the name of a node, a number or a text; anything else is no name."""
        if isinstance(name, float) and name.is_integer():
            name = int(name)
        # Python refuses to write whole numbers of thousands of digits as text.
        with suppress(ValueError):
            if isinstance(name, str | int):
                self._names[node] = sanitize_text(str(name))

    def write(self) -> None:
        """Write the map, if there are new names."""
        if len(self._names) > self._written:
            self._written = len(self._names)
            text = json.dumps(self._names, indent=1, sort_keys=True)
            self._writer.write_extra_file(NAMES_FILE, f"{text}\n")


def _ask(source: Mapping[int, str] | Callable[[int], str], node: int) -> object:
    """Return the name of a node; None if there is none."""
    if isinstance(source, Mapping):
        return source.get(node)
    # The function is the app's, and its errors must not end the recording.
    try:
        return source(node)
    except Exception as error:
        _LOG.warning("overheard: node_names failed for node %d: %r", node, error)
        return None
