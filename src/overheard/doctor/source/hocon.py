"""Reads the settings of an NVFlare job in HOCON, without what could read other files.

Objects, lists, comments, and values with or without quotes are read, as NVFlare's own templates
have them. Includes and references are refused: an include reads another file or address. What
pyhocon, with which NVFlare reads settings, would put together is refused too, as a job could
otherwise show other settings than it runs with: names that are given twice, +=, and values side
by side.
"""

import re
from collections.abc import Iterator
from itertools import islice

from overheard.core.errors import PlanError
from overheard.disk.limits import SMALL_FILE, check_json
from overheard.disk.reading import parse_json

MAX_DEPTH = 50
"""The most objects and lists that lie in each other."""

MAX_TOKENS = 200_000
"""The most words and signs of a document; each takes about 100 bytes while it is read."""

# No part gives anything back once it matched, so that the time is linear in the length.
_TOKEN = re.compile(
    r"(?P<blank>[ \t\r]++|(?:#|//)[^\n]*+)|(?P<line>[\n,])|(?P<sign>[{}\[\]=:])"
    r'|(?P<raw>"""(?:[^"]|"(?!""))*+""")|(?P<quoted>"(?:[^"\\\n]|\\.)*+")'
    r'|(?P<plain>[^\s{}\[\]=:,#"$](?:(?!//)[^\n{}\[\]=:,#"$])*+)'
)
_NUMBER = re.compile(r"-?\d{1,18}(\.\d{1,18})?([eE][+-]?\d{1,3})?", re.ASCII)

Value = object

Token = tuple[str, str, int]
"""Its kind, its text, and its line."""


def parse_hocon(text: str, place: str) -> dict[str, Value]:
    """Return the values of a document.

    Raises:
        PlanError: if it is no such document, nests too deeply, or has includes or references.

    """
    check_json(text.encode(), place, PlanError, part=SMALL_FILE // 16)
    tokens = list(islice(_tokens(text, place), MAX_TOKENS + 1))
    if len(tokens) > MAX_TOKENS:
        raise PlanError(f"{place}: has more than {MAX_TOKENS} words and signs: shorten it")
    parser = _Parser(tokens, place)
    parser.skip_lines()
    is_braced = parser.peek() == ("sign", "{")
    value = parser.value(0) if is_braced else parser.members(0, end="")
    parser.skip_lines()
    if parser.peek() != ("", "") or not isinstance(value, dict):
        raise parser.error("what follows the end of the document")
    return value


def _tokens(text: str, place: str) -> Iterator[Token]:
    at, line = 0, 1
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise PlanError(
                f"{place}, line {line}: {text[at : at + 20]!r} is not read: write plain values "
                "without $, or save the settings as .json"
            )
        kind, token = str(found.lastgroup), found[0]
        if kind != "blank":
            yield kind, token, line
        line += token.count("\n")
        at = found.end()


class _Parser:
    """The rest of a document."""

    def __init__(self, tokens: list[Token], place: str) -> None:
        self._tokens, self._place, self._at = tokens, place, 0

    def peek(self) -> tuple[str, str]:
        """Return kind and text of the next token; two empty texts at the end."""
        return self._tokens[self._at][:2] if self._at < len(self._tokens) else ("", "")

    def error(self, what: str) -> PlanError:
        line = self._tokens[min(self._at, len(self._tokens) - 1)][2] if self._tokens else 1
        return PlanError(
            f"{self._place}, line {line}: {what} is not read: correct it, or save the settings "
            "as .json"
        )

    def skip_lines(self) -> None:
        while self.peek()[0] == "line":
            self._at += 1

    def end_value(self, end: str) -> None:
        """Check that a comma, a line or the end of the object or list follows a value."""
        kind, text = self.peek()
        if kind not in ("line", "") and (kind, text) != ("sign", end):
            raise self.error(f"{text[:20]!r} beside a value")

    def value(self, depth: int) -> Value:
        """Read an object, a list or a plain value."""
        if depth > MAX_DEPTH:
            raise self.error("an object that is nested too deeply")
        kind, text = self.peek()
        self._at += 1
        if (kind, text) == ("sign", "{"):
            return self.members(depth + 1, end="}")
        if (kind, text) == ("sign", "["):
            return self._items(depth + 1)
        if kind == "quoted":
            return self._unquoted(text, self._at - 1)
        if kind == "raw":
            return text[3:-3]
        if kind == "plain":
            # Signs within a value without quotes, as in 10:30, belong to it.
            while self.peek() in (("sign", ":"), ("sign", "=")):
                text += self.peek()[1]
                self._at += 1
                if self.peek()[0] == "plain":
                    text += self.peek()[1]
                    self._at += 1
            return _plain(text.strip())
        self._at -= 1
        raise self.error(f"{text[:20]!r} in place of a value")

    def members(self, depth: int, end: str) -> dict[str, Value]:
        """Read the members of an object up to its end."""
        found = dict[str, Value]()
        while True:
            self.skip_lines()
            kind, text = self.peek()
            if (kind, text) == (("sign", end) if end else ("", "")):
                self._at += 1
                return found
            if kind not in ("plain", "quoted"):
                raise self.error(f"{text[:20]!r} in place of a name")
            name = self._unquoted(text, self._at) if kind == "quoted" else text.strip()
            if kind == "plain" and (name.split() or [""])[0] == "include":
                raise self.error("an include, which names another file,")
            inner, last = self._place_of(name, found, depth, is_path=kind == "plain")
            self._at += 1
            if self.peek() in (("sign", "="), ("sign", ":")):
                self._at += 1
                self.skip_lines()
            elif self.peek() != ("sign", "{"):
                raise self.error(f"{name[:20]!r} without a value")
            inner[last] = self.value(depth)
            self.end_value(end)

    def _place_of(
        self, name: str, found: dict[str, Value], depth: int, *, is_path: bool
    ) -> tuple[dict[str, Value], str]:
        """Return the object in which a name stands, and its name there.

        A name without quotes is a path: with a.b = 1, the object a has the member b.
        """
        *above, last = [one.strip() for one in name.split(".")] if is_path else [name]
        if depth + len(above) > MAX_DEPTH:
            raise self.error("an object that is nested too deeply")
        for part in above:
            inner = found.setdefault(part, {})
            if not isinstance(inner, dict):
                raise self.error(f"{name[:20]!r}, which is given twice,")
            found = inner
        if last in found:
            raise self.error(f"{name[:20]!r}, which is given twice,")
        if is_path and (last.endswith("+") or not all((*above, last))):
            raise self.error(f"{name[:20]!r} in place of a name")
        return found, last

    def _items(self, depth: int) -> list[Value]:
        found = list[Value]()
        while True:
            self.skip_lines()
            if self.peek() == ("sign", "]"):
                self._at += 1
                return found
            found.append(self.value(depth))
            self.end_value("]")

    def _unquoted(self, text: str, at: int) -> str:
        # Texts in quotes are those of JSON.
        line = self._tokens[at][2]
        return str(parse_json(text.encode(), f"{self._place}, line {line}", PlanError))


def _plain(text: str) -> Value:
    constants: dict[str, Value] = {"true": True, "false": False, "null": None}
    if text in constants:
        return constants[text]
    if number := _NUMBER.fullmatch(text):
        return float(text) if number[1] or number[2] else int(text)
    return text
