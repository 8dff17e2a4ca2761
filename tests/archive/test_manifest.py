import json
import math
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overheard.archive.layout import manifest_path
from overheard.archive.manifest import (
    SOFTWARE_FIELDS,
    DefenseRecord,
    Manifest,
    describe_differences,
    read_manifest,
    write_manifest,
)
from overheard.core.errors import OutputError, TranscriptError
from overheard.core.mechanism import Mechanism
from overheard.core.task import Task

SILENCE = DefenseRecord("silence", "Silence()", "client", "the client")


def edit(path: Path, **changes: object) -> None:
    whole = json.loads(path.read_text())
    path.write_text(json.dumps(whole | changes))


def test_a_manifest_is_read_as_written(tmp_path: Path, manifest: Manifest) -> None:
    task = Task((4,), ("age",), kind="regression")
    whole = replace(manifest, task=task, defenses=(SILENCE,), participation=0.5)
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


def test_the_usual_precision_is_not_written(tmp_path: Path, manifest: Manifest) -> None:
    """So that older versions read the manifests of all runs that have it."""
    assert manifest.recipe is not None
    write_manifest(tmp_path, manifest)
    assert "precision" not in json.loads(manifest_path(tmp_path).read_text())["recipe"]
    rounded = replace(manifest, recipe=replace(manifest.recipe, precision="bf16"))
    write_manifest(tmp_path, rounded)
    assert read_manifest(tmp_path) == rounded


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
        ({"rounds": -1}, "rounds: must be 0 or more, got -1"),
        ({"unknown": 1}, "unknown"),
        ({"task": {"shape": [2], "class_names": ["one"]}}, "2 classes or more"),
        ({"recipe": {"rate": 0.1, "epochs": 1, "batch": 4, "x": 1}}, "recipe.x"),
        ({"parties": ["../server"]}, "rename the party"),
        ({"parties": "server"}, "parties"),
        ({"participation": float("nan")}, "participation"),
        ({"participation": 0.0}, "participation: must be above 0"),
        ({"participation": 7.5}, "participation: must be at most 1"),
        ({"failure_rate": -0.1}, "failure_rate: must be 0 or more"),
        ({"failure_rate": 1e308}, "failure_rate: must be at most 1"),
        ({"rounds": 10**9}, "rounds: must be below 1000000000"),
        ({"rounds": 10**400}, "more than 300 digits"),
        ({"rounds": True}, "rounds: must be a whole number, got True"),
        ({"parties": ["server", "client/0", "client/0"]}, "parties names client/0 twice"),
        ({"left_out": ["steps", "steps"]}, "left_out names steps twice"),
        ({"task": {"shape": [2], "class_names": ["a", "b"], "vocabulary": 0}}, "1 token"),
        ({"format": "1"}, "format"),
        ({"format": True}, "format"),
        ({"format": 0}, "format: must be 1 or more"),
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


def test_refuses_a_key_twice(tmp_path: Path, manifest: Manifest) -> None:
    write_manifest(tmp_path, manifest)
    text = manifest_path(tmp_path).read_text()
    manifest_path(tmp_path).write_text(text.replace("{", '{"rounds": 900,', 1))
    with pytest.raises(TranscriptError, match="the key 'rounds' twice"):
        read_manifest(tmp_path)


NUMBERS = st.sampled_from((-1, 0, 1, 0.5, 7.5, 10**9, 10**400, True, math.nan, math.inf))


@given(
    st.dictionaries(
        st.sampled_from(("participation", "failure_rate", "rounds", "seed")), NUMBERS
    ),
    NUMBERS,
)
def test_a_manifest_is_written_only_if_it_is_read_as_written(
    changes: dict[str, Any], clip: float
) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        try:
            mechanism = Mechanism(1.0, clip, 1e-5, "client", None)
            noise = replace(SILENCE, mechanism=mechanism)
            manifest = replace(Manifest(None, "", None, (noise,), (), None), **changes)
            write_manifest(folder, manifest)
        except (ValueError, OutputError):
            assert not manifest_path(folder).exists()
        else:
            assert read_manifest(folder) == manifest


def test_a_manifest_that_would_be_refused_names_the_field(
    tmp_path: Path, manifest: Manifest
) -> None:
    unnamed = replace(manifest, defenses=(replace(SILENCE, name=3),))  # type: ignore[arg-type]
    with pytest.raises(OutputError, match=r"defenses\.0\.name: must be text, got 3"):
        write_manifest(tmp_path, unnamed)
    assert not manifest_path(tmp_path).exists()


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
