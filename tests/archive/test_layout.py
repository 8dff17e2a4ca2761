import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overheard.archive.layout import (
    is_there,
    read_inside,
    round_folder,
    size_inside,
    transcript_folder,
    weights_name,
    weights_path,
)
from overheard.core.errors import TranscriptError
from overheard.core.parties import NAME, Party, client

parties = st.from_regex(NAME, fullmatch=True).map(Party)
kinds = st.sampled_from(["broadcast", "update", "aggregate", "distilled"])


def test_a_file_tells_who_sent_what() -> None:
    assert weights_name(7, client(3), "update") == "0007-client-3-update.safetensors"


@given(parties, parties, kinds, kinds)
def test_no_two_messages_of_a_round_share_a_file_even_where_case_is_not_told(
    one: Party, other: Party, kind: str, other_kind: str
) -> None:
    first, second = weights_name(0, one, kind), weights_name(1, other, other_kind)
    assert first.lower() != second.lower()


@given(parties, kinds, st.integers(0, 10**7))
def test_every_name_that_is_written_is_accepted_when_read(
    party: Party, kind: str, place: int
) -> None:
    name = weights_name(place, party, kind)
    assert weights_path(Path("t"), 2, name) == Path("t/rounds/r0002") / name
    assert len(name) < 255


@pytest.mark.parametrize(
    "name",
    [
        "../0000-a-update.safetensors",
        "/etc/passwd",
        "0000-a/../../x.safetensors",
        "..",
        "",
        "0000-a-update.safetensors\n",
        "0000-a\\b.safetensors",
        "manifest.json",
    ],
)
def test_a_name_that_leads_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(TranscriptError, match="no name of a weights file"):
        weights_path(Path("t"), 0, name)


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(TranscriptError, match="leads out of the transcript's folder"):
        read_inside(tmp_path / "t" / "link", tmp_path / "t")


def test_a_folder_that_is_a_link_out_is_refused(tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "t" / "rounds"
    outside.mkdir()
    inside.mkdir(parents=True)
    (outside / "x").write_text("secret")
    round_folder(tmp_path / "t", 0).symlink_to(outside)
    with pytest.raises(TranscriptError, match="leads out"):
        size_inside(round_folder(tmp_path / "t", 0) / "x", tmp_path / "t")


def test_a_transcript_behind_a_link_is_read(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "x").write_bytes(b"123")
    (tmp_path / "here").symlink_to(tmp_path / "t")
    assert size_inside(tmp_path / "here" / "x", tmp_path / "here") == 3


def test_a_link_to_itself_and_a_missing_file_are_named(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name in ("loop", "absent"):
        with pytest.raises(TranscriptError, match=f"{name} cannot be read"):
            size_inside(tmp_path / name, tmp_path)


@pytest.mark.skipif(os.name != "posix", reason="needs named pipes")
def test_a_pipe_is_refused_before_anybody_waits_on_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TranscriptError, match="no plain file"):
        read_inside(tmp_path / "pipe", tmp_path)


def test_a_file_that_may_not_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, **_: object) -> None:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "x").write_text("")
    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(TranscriptError, match="check the permissions"):
        read_inside(tmp_path / "x", tmp_path)
    monkeypatch.setattr(Path, "stat", refuse)
    with pytest.raises(TranscriptError, match="ask for the permission"):
        is_there(tmp_path / "x")


def test_a_transcript_handed_over_without_its_run_is_found(tmp_path: Path) -> None:
    assert transcript_folder(tmp_path) == tmp_path / "transcript"
    (tmp_path / "manifest.json").write_text("{}")
    assert transcript_folder(tmp_path) == tmp_path
