import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from overheard.archive.message_lines import (
    LINE_PARSER,
    Line,
    MissingReplyLine,
    StoredFile,
    UpdateLine,
    stored_file,
)


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(0, 10**9 - 1))
def test_a_line_is_a_single_line_that_is_read_as_written(reason: str, size: int) -> None:
    line = Line(size, "client/0", ("server",), MissingReplyLine("missing", reason))
    raw = LINE_PARSER.dump_json(line)
    assert raw.splitlines() == [raw]
    assert LINE_PARSER.validate_json(raw) == line


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_metrics_are_stored_exactly(value: float) -> None:
    body = UpdateLine("update", StoredFile("x", 1, "a" * 64), None, {"loss": value})
    line = Line(0, "client/0", (), body)
    assert LINE_PARSER.validate_json(LINE_PARSER.dump_json(line)) == line
    assert stored_file(line.body) == StoredFile("x", 1, "a" * 64)


@pytest.mark.parametrize(
    "body",
    [
        '{"kind": "shout", "reason": ""}',
        '{"kind": "missing"}',
        '{"kind": "missing", "reason": 3}',
        '{"kind": "missing", "reason": "", "more": 1}',
        '{"kind": "update", "delta": {"name": "x", "size": 1, "sha256": ""},'
        ' "examples": 1, "metrics": {"loss": NaN}}',
        '{"kind": "update", "delta": {"name": "x", "size": -1, "sha256": "%s"},'
        ' "examples": 1, "metrics": {}}' % ("a" * 64),
        '{"kind": "update", "delta": {"name": "x", "size": 1, "sha256": "A"},'
        ' "examples": 1, "metrics": {}}',
        '{"kind": "broadcast", "weights": {"name": "x", "size": 1, "sha256": "%s"},'
        ' "parameters": [{"name": "w", "shape": [-1]}]}' % ("a" * 64),
    ],
)
def test_an_invalid_body_is_refused(body: str) -> None:
    with pytest.raises(ValidationError):
        LINE_PARSER.validate_json(
            f'{{"round": 0, "sender": "a", "readers": [], "body": {body}}}'
        )
