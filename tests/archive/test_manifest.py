import json
from dataclasses import replace
from pathlib import Path

import pytest

from overheard.archive.layout import manifest_path
from overheard.archive.manifest import (
    SOFTWARE_FIELDS,
    DefenseRecord,
    Manifest,
    describe_differences,
    read_manifest,
    write_manifest,
)
from overheard.core.errors import TranscriptError
from overheard.core.task import Task

SILENCE = DefenseRecord("silence", "Silence()", "client", "the client")


def edit(path: Path, **changes: object) -> None:
    whole = json.loads(path.read_text())
    path.write_text(json.dumps(whole | changes))


def test_a_manifest_is_read_as_written(tmp_path: Path, manifest: Manifest) -> None:
    whole = replace(manifest, defenses=(SILENCE,), participation=0.5)
    write_manifest(tmp_path / "transcript", whole)
    assert read_manifest(tmp_path) == whole
    assert read_manifest(tmp_path / "transcript") == whole


def test_no_defenses_are_known_only_if_that_is_stated(
    tmp_path: Path, manifest: Manifest
) -> None:
    untold = replace(manifest, framework="flwr 1.41.0", defenses=())
    write_manifest(tmp_path, untold)
    assert not read_manifest(tmp_path).are_defenses_known
    stated = replace(untold, are_defenses_stated=True, algorithm="FedAvg()")
    write_manifest(tmp_path, stated)
    assert read_manifest(tmp_path) == stated
    assert read_manifest(tmp_path).are_defenses_known
    assert replace(untold, defenses=(SILENCE,)).are_defenses_known
    assert replace(untold, framework="overheard").are_defenses_known


def test_the_kind_of_a_task_is_kept(tmp_path: Path, manifest: Manifest) -> None:
    number = replace(manifest, task=Task((4,), ("age",), kind="regression"))
    write_manifest(tmp_path, number)
    assert read_manifest(tmp_path) == number


def test_has_format_and_software_versions(manifest: Manifest) -> None:
    assert manifest.format == 1
    assert manifest.torch.startswith("2.")
    assert manifest.overheard


def test_a_transcript_of_format_1_without_later_keys_is_read_with_defaults(
    tmp_path: Path, manifest: Manifest
) -> None:
    write_manifest(tmp_path, manifest)
    whole = json.loads(manifest_path(tmp_path).read_text())
    assert whole["format"] == 1
    assert whole["recipe"].pop("label_smoothing") == 0
    assert whole["recipe"].pop("loss") == "cross_entropy"
    assert whole["recipe"].pop("proximal") == 0
    assert whole["task"].pop("kind") == "classification"
    assert whole.pop("are_defenses_stated") is False
    assert whole.pop("algorithm") == ""
    manifest_path(tmp_path).write_text(json.dumps(whole))
    assert read_manifest(tmp_path) == manifest


def test_a_newer_format_is_refused_with_both_versions(
    tmp_path: Path, manifest: Manifest
) -> None:
    write_manifest(tmp_path, manifest)
    edit(manifest_path(tmp_path), format=2, overheard="9.1", unheard_of=True)
    with pytest.raises(TranscriptError) as caught:
        read_manifest(tmp_path)
    for part in ("format 2", "overheard 9.1", manifest.overheard, "to 1", "upgrade"):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"rounds": "4"}, "rounds"),
        ({"rounds": -1}, "rounds must be 0 or more"),
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
def test_a_damaged_manifest_is_refused_with_the_location(
    tmp_path: Path, manifest: Manifest, changes: dict[str, object], place: str
) -> None:
    write_manifest(tmp_path, manifest)
    edit(manifest_path(tmp_path), **changes)
    with pytest.raises(TranscriptError, match="is damaged") as caught:
        read_manifest(tmp_path)
    assert place in str(caught.value)
    assert str(manifest_path(tmp_path)) in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[]", b"null", b"[" * 100_000])
def test_content_that_is_no_manifest_is_refused(tmp_path: Path, content: bytes) -> None:
    manifest_path(tmp_path).write_bytes(content)
    with pytest.raises(TranscriptError, match="is damaged"):
        read_manifest(tmp_path)


def test_a_folder_without_a_transcript_is_reported(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match="holds no transcript"):
        read_manifest(tmp_path / "nowhere")


def test_differences_name_only_differing_fields_with_both_values(manifest: Manifest) -> None:
    other = replace(manifest, seed=4, torch="1.0")
    assert describe_differences(manifest, manifest) == ()
    assert describe_differences(manifest, other, SOFTWARE_FIELDS) == (
        "seed (stored 3, given 4)",
    )
    assert len(describe_differences(manifest, other)) == 2
