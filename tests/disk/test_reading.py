"""Files are read within limits."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from overheard.core.errors import DataError, OutputError, PlanError
from overheard.disk import reading
from overheard.disk.limits import (
    ANY_RATIO,
    ARRAY,
    TABLE,
    VARIABLE,
    is_sparse,
    limit_of,
    parse_size,
    refuse_large,
)
from overheard.disk.reading import (
    parse_expression,
    parse_json,
    parse_literal,
    parse_python,
    parse_toml,
    read_json_text,
    read_small_file,
    read_text,
)


def test_reads_a_file_and_a_link_inside_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfwords")
    (tmp_path / "inner/b").symlink_to(tmp_path / "a")
    assert read_text(tmp_path / "a", OutputError) == "words"
    assert read_text(tmp_path / "inner/b", OutputError, inside=tmp_path) == "words"


def _link(path: Path) -> None:
    path.symlink_to("/proc/self/environ")


def _loop(path: Path) -> None:
    path.symlink_to(path)


def _unreadable(path: Path) -> None:
    path.write_bytes(b"\xff")


@pytest.mark.skipif(os.name != "posix", reason="needs named pipes and links")
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: None, "cannot be read"),
        (Path.mkdir, "no regular file|Is a directory"),
        (os.mkfifo, "no regular file"),
        (_link, "links to outside of its folder"),
        (_loop, "cannot be read"),
        (_unreadable, "no text in UTF-8"),
    ],
    ids=["missing", "folder", "pipe", "link", "loop", "binary"],
)
def test_refuses_all_but_text_in_a_regular_file(
    make: Callable[[Path], None], words: str, tmp_path: Path
) -> None:
    make(tmp_path / "file")
    with pytest.raises(OutputError, match=words):
        read_text(tmp_path / "file", OutputError)


def test_refuses_a_large_file_before_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    os.truncate(tmp_path / "file", 2**40)
    with pytest.raises(OutputError, match="--max-unpacked"):
        read_small_file(tmp_path / "file", OutputError)


def test_refuses_a_file_that_grows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"1")
    monkeypatch.setattr(
        reading, "refuse_large", lambda *_, **__: (tmp_path / "file").write_bytes(b"123")
    )
    with pytest.raises(OutputError, match="it grows"):
        read_small_file(tmp_path / "file", OutputError)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * 100_000, "nested too deeply"),
        ("1" * 301, "301|more than 300 digits"),
        ("[NaN]", "NaN is not valid JSON"),
        ("\ufeff1", "BOM"),
    ],
    ids=["deep", "digits", "nan", "mark"],
)
def test_json_is_refused_with_a_reason(text: str, words: str) -> None:
    with pytest.raises(OutputError, match=f"^f is damaged: .*({words}).*; correct it"):
        parse_json(text.encode(), "f", OutputError, refuses_nan=True)


def test_json_of_many_values_is_refused_by_their_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("[" + "[]," * 1000 + "0]")
    monkeypatch.setenv(VARIABLE, str(4 * 100_000))
    with pytest.raises(OutputError, match="its content takes"):
        read_json_text(tmp_path / "file", OutputError)
    (tmp_path / "file").write_text('"' + "[]-" * 1000 + '"')
    read_json_text(tmp_path / "file", OutputError)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a = " + "[" * 100_000, "recursion"),
        ("a." * 64 + "a = 1", "64 parts"),
        ("'a' . " * 64 + "a = 1", "64 parts"),
        ("a = " + "1" * 301, "300 digits"),
        ("a = 1" + "_1" * 300, "300 digits"),
        ("a = 0x" + "f" * 250, "300 digits"),
        ("[[a]]\n" * 100_001, "200000 brackets"),
        ("a = [" + "1.5," * 200_001 + "]", "200000 brackets"),
        ("a", "Expected"),
    ],
    ids=[
        "deep",
        "dotted",
        "quoted",
        "digits",
        "underscores",
        "hexadecimal",
        "tables",
        "dots",
        "cut",
    ],
)
def test_toml_is_refused_with_a_reason(text: str, words: str) -> None:
    with pytest.raises(OutputError, match=f"^f: not TOML.*{words}"):
        parse_toml(text, "f", OutputError)


def test_toml_may_have_a_key_of_64_parts() -> None:
    assert "a" in parse_toml("a." * 63 + "a = 1", "f", OutputError)


@pytest.mark.parametrize("text", ["a\0", "-" * 10_000 + "1", "a" + ".a" * 10_000, "("])
def test_code_that_cannot_be_parsed_is_a_syntax_error(text: str) -> None:
    for parse in (parse_python, parse_expression):
        with pytest.raises(SyntaxError):
            parse(text)


def test_only_plain_values_are_literals() -> None:
    assert parse_literal(parse_expression("(1, 'a')")) == (1, "a")
    for text in ("f()", "{[]: 1}", "1 + 'a'"):
        with pytest.raises(SyntaxError):
            parse_literal(parse_expression(text))


@pytest.mark.parametrize("text", ["", "0", "0GB", "-1", "8 G", "1e9", "8GB8", "٨GB"])
def test_refuses_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="is no size"):
        parse_size(text)


def test_sizes_have_units() -> None:
    assert [parse_size(one) for one in ("7", "2 kb", "3GB")] == [7, 2048, 3 * 2**30]


def test_the_variable_raises_all_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    assert limit_of(ARRAY) == 2**32
    monkeypatch.setenv(VARIABLE, "8GB")
    assert limit_of(TABLE) == 2**31
    monkeypatch.setenv(VARIABLE, "much")
    with pytest.raises(PlanError, match=f"{VARIABLE}: 'much' is no size"):
        limit_of(TABLE)


def test_the_message_names_the_size_that_the_option_needs() -> None:
    refuse_large("t", 2**30, DataError, part=TABLE)
    # 1 GiB and a byte are a quarter of 4 GiB and 4 bytes.
    with pytest.raises(DataError, match="--max-unpacked 5GB"):
        refuse_large("t", 2**30 + 1, DataError, part=TABLE)


def test_small_files_may_not_unpack_to_much() -> None:
    most = limit_of(ANY_RATIO)
    refuse_large("t", most, DataError, part=ARRAY, packed=1)
    refuse_large("t", 2 * most, DataError, part=ARRAY, packed=most // 40)
    with pytest.raises(DataError, match="has 1 bytes on the disk and unpacks to"):
        refuse_large("t", most + 1, DataError, part=ARRAY, packed=1)


def test_files_of_holes_are_sparse_and_written_ones_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(64 * 1000))
    path = tmp_path / "file"
    path.write_bytes(b"1" * 10_000)
    os.truncate(path, 10**6)
    # A block of 4 KiB may be stored where fewer bytes were written.
    assert not is_sparse(path, path.stat())
    os.truncate(path, 10**8)
    assert is_sparse(path, path.stat())
