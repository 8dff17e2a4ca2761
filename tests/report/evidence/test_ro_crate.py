"""The crate meets what RO-Crate 1.2 demands of its metadata file, root and files."""

import json
from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from overheard.report.evidence.digests import CheckedFile, CheckedFolder
from overheard.report.evidence.officer import OfficerWords
from overheard.report.evidence.ro_crate import FILE_FACTS, ro_crate
from tests.report.evidence.annexes import read

FILES = CheckedFolder(
    Path("audit"),
    "c" * 64,
    (CheckedFile("report.html", "as written", "d" * 64), CheckedFile("notes", "not listed")),
)


@pytest.fixture
def graph(tmp_path: Path) -> dict[str, dict[str, Any]]:
    """The entities by id."""
    for name in FILE_FACTS:
        (tmp_path / name).write_bytes(name.encode())
    words = OfficerWords(license="Internal use.", controller="A hospital")
    text = ro_crate(tmp_path, read(), words, FILES, "2026-11-22")
    document = json.loads(text)
    assert document["@context"][0] == "https://w3id.org/ro/crate/1.2/context"
    entities = {one["@id"]: one for one in document["@graph"]}
    assert len(entities) == len(document["@graph"])
    return entities


def test_the_descriptor_names_the_specification_and_the_root(graph: dict[str, Any]) -> None:
    descriptor = graph["ro-crate-metadata.json"]
    assert descriptor["@type"] == "CreativeWork"
    assert descriptor["conformsTo"] == {"@id": "https://w3id.org/ro/crate/1.2"}
    assert descriptor["about"] == {"@id": "./"}


def test_the_root_has_all_properties_that_it_must_have(graph: dict[str, Any]) -> None:
    root = graph["./"]
    assert root["@type"] == "Dataset"
    assert root["name"]
    assert root["description"]
    assert date.fromisoformat(root["datePublished"]) == date(2026, 11, 22)
    assert graph[root["license"]["@id"]]["description"] == "Internal use."
    assert graph[root["author"]["@id"]]["name"] == "A hospital"


def test_every_file_is_a_part_with_its_digest(graph: dict[str, Any]) -> None:
    assert {one["@id"] for one in graph["./"]["hasPart"]} == set(FILE_FACTS)
    for name in FILE_FACTS:
        assert graph[name]["@type"] == "File"
        assert graph[name]["sha256"] == sha256(name.encode()).hexdigest()
        assert graph[name]["contentSize"] == str(len(name))
        assert "/" in graph[name]["encodingFormat"]


def test_files_of_the_audit_are_named_but_no_part(graph: dict[str, Any]) -> None:
    assert graph["#report.html"]["sha256"] == "d" * 64
    assert "#notes" not in graph
    assert graph["#making-of-the-annex"]["object"] == [{"@id": "#report.html"}]


def test_every_link_leads_to_an_entity(graph: dict[str, Any]) -> None:
    def links(value: object) -> list[str]:
        if isinstance(value, dict):
            return [value["@id"]] if set(value) == {"@id"} else []
        return (
            [found for one in value for found in links(one)] if isinstance(value, list) else []
        )

    for entity in graph.values():
        for key, value in entity.items():
            assert key == "conformsTo" or set(links(value)) <= set(graph)


def test_entities_are_flat(graph: dict[str, Any]) -> None:
    for entity in graph.values():
        for value in entity.values():
            for one in value if isinstance(value, list) else [value]:
                assert not isinstance(one, dict) or set(one) == {"@id"}
