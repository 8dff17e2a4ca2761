import json
from dataclasses import replace
from pathlib import Path

import pytest

from overheard.archive.layout import manifest_path
from overheard.archive.manifest import (
    WRITERS,
    DefenseRecord,
    Manifest,
    differences,
    read_manifest,
    record,
    write_manifest,
)
from overheard.core.defense import Defense
from overheard.core.errors import TranscriptError


class Silence(Defense):
    """Changes nothing."""

    name = "silence"
    source = "this test"
    enforced_at = "client"
    switched_off_by = "the client"

    def __repr__(self) -> str:
        return "Silence()"


def edit(path: Path, **changes: object) -> None:
    whole = json.loads(path.read_text())
    path.write_text(json.dumps(whole | changes))


def test_gives_back_what_was_written(tmp_path: Path, manifest: Manifest) -> None:
    whole = replace(manifest, defenses=(record(Silence()),), participation=0.5)
    write_manifest(tmp_path / "transcript", whole)
    assert read_manifest(tmp_path) == whole
    assert read_manifest(tmp_path / "transcript") == whole


def test_a_defense_is_put_down_with_its_settings_and_its_place() -> None:
    assert record(Silence()) == DefenseRecord("silence", "Silence()", "client", "the client")


def test_says_with_what_it_was_written(manifest: Manifest) -> None:
    assert manifest.format == 1
    assert manifest.torch.startswith("2.")
    assert manifest.overheard


def test_a_recipe_of_before_it_named_a_loss_or_a_smoothing_is_read_as_plain(
    tmp_path: Path, manifest: Manifest
) -> None:
    write_manifest(tmp_path, manifest)
    whole = json.loads(manifest_path(tmp_path).read_text())
    assert whole["recipe"].pop("label_smoothing") == 0
    assert whole["recipe"].pop("loss") == "cross_entropy"
    edit(manifest_path(tmp_path), recipe=whole["recipe"])
    assert read_manifest(tmp_path) == manifest


def test_a_newer_format_is_refused_naming_both_versions(
    tmp_path: Path, manifest: Manifest
) -> None:
    write_manifest(tmp_path, manifest)
    edit(manifest_path(tmp_path), format=2, overheard="9.1", unheard_of=True)
    with pytest.raises(TranscriptError) as refusal:
        read_manifest(tmp_path)
    for part in ("format 2", "overheard 9.1", manifest.overheard, "to 1", "upgrade"):
        assert part in str(refusal.value)


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"rounds": "4"}, "rounds"),
        ({"rounds": -1}, "0 rounds or more"),
        ({"unknown": 1}, "unknown"),
        ({"task": {"shape": [2], "class_names": ["one"]}}, "2 classes or more"),
        ({"recipe": {"rate": 0.1, "epochs": 1, "batch": 4, "x": 1}}, "recipe.x"),
        ({"parties": ["../server"]}, "rename the party"),
        ({"parties": "server"}, "parties"),
        ({"participation": float("nan")}, "participation"),
        ({"format": "1"}, "format"),
        ({"format": True}, "format"),
    ],
)
def test_a_damaged_manifest_is_refused_naming_the_place(
    tmp_path: Path, manifest: Manifest, changes: dict[str, object], place: str
) -> None:
    write_manifest(tmp_path, manifest)
    edit(manifest_path(tmp_path), **changes)
    with pytest.raises(TranscriptError, match="is damaged") as refusal:
        read_manifest(tmp_path)
    assert place in str(refusal.value)
    assert str(manifest_path(tmp_path)) in str(refusal.value)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[]", b"null", b"[" * 100_000])
def test_what_is_no_manifest_at_all_is_refused(tmp_path: Path, content: bytes) -> None:
    manifest_path(tmp_path).write_bytes(content)
    with pytest.raises(TranscriptError, match="is damaged"):
        read_manifest(tmp_path)


def test_a_folder_without_a_transcript_is_named(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match="holds no transcript"):
        read_manifest(tmp_path / "nowhere")


def test_only_what_differs_is_named_with_both_values(manifest: Manifest) -> None:
    other = replace(manifest, seed=4, torch="1.0")
    assert differences(manifest, manifest) == ()
    assert differences(manifest, other, WRITERS) == ("seed (there 3, here 4)",)
    assert len(differences(manifest, other)) == 2
