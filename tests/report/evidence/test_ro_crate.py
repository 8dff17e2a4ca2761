"""The crate follows the rules of RO-Crate 1.2 for its document, root, files and other entities.

The rules are those of the specification at https://w3id.org/ro/crate/1.2, by page.
"""

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
    (
        CheckedFile("report.html", "as written", "d" * 64, 77),
        CheckedFile("notes", "not listed"),
    ),
)


@pytest.fixture
def graph(tmp_path: Path) -> dict[str, dict[str, Any]]:
    """The entities by id."""
    for name in FILE_FACTS:
        (tmp_path / name).write_bytes(name.encode())
    words = OfficerWords(license="Internal use.", controller="A hospital")
    text = ro_crate(tmp_path, read(), words, FILES, "2026-11-22")
    document = json.loads(text)
    # Page "Structure": the context is named, not copied.
    assert document["@context"] == "https://w3id.org/ro/crate/1.2/context"
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
    assert graph[root["license"]["@id"]]["name"]
    assert graph[root["author"]["@id"]]["name"] == "A hospital"


def test_the_publisher_is_an_organization_with_a_contact(graph: dict[str, Any]) -> None:
    """Page "Contextual entities", sections "Publisher" and "Contact information"."""
    publisher = graph[graph["./"]["publisher"]["@id"]]
    assert publisher["@type"] == "Organization"
    assert graph[publisher["contactPoint"]["@id"]]["@type"] == "ContactPoint"


def test_every_file_is_a_part_with_its_digest(graph: dict[str, Any]) -> None:
    """Page "Data entities": files are linked from the root, and say what they are."""
    assert {one["@id"] for one in graph["./"]["hasPart"]} == set(FILE_FACTS)
    for name in FILE_FACTS:
        assert graph[name]["@type"] == "File"
        assert graph[name]["description"]
        assert graph[name]["sha256"] == sha256(name.encode()).hexdigest()
        assert graph[name]["contentSize"] == str(len(name))
        assert "/" in graph[name]["encodingFormat"]


def test_files_of_the_audit_are_named_but_no_part(graph: dict[str, Any]) -> None:
    """Page "Data entities": an absent file has a local identifier and a `localPath`."""
    absent = graph["#report.html"]
    assert absent["sha256"] == "d" * 64
    assert (absent["localPath"], absent["contentSize"]) == ("report.html", "77")
    assert absent["encodingFormat"] == "text/html"
    assert "#notes" not in graph
    assert graph["#making-of-the-annex"]["object"] == [{"@id": "#report.html"}]


def links(value: object) -> list[str]:
    """Return the ids that a value of an entity links to."""
    if isinstance(value, dict):
        return [value["@id"]] if set(value) == {"@id"} else []
    return [found for one in value for found in links(one)] if isinstance(value, list) else []


def test_every_link_leads_to_an_entity(graph: dict[str, Any]) -> None:
    for entity in graph.values():
        for key, value in entity.items():
            assert key == "conformsTo" or set(links(value)) <= set(graph)


def test_entities_are_flat(graph: dict[str, Any]) -> None:
    for entity in graph.values():
        for value in entity.values():
            for one in value if isinstance(value, list) else [value]:
                assert not isinstance(one, dict) or set(one) == {"@id"}


def test_every_entity_has_a_type_a_name_and_a_description(graph: dict[str, Any]) -> None:
    """Page "Metadata": common principles for all entities; the descriptor needs no name."""
    for name, entity in graph.items():
        assert entity["@type"], name
        if name != "ro-crate-metadata.json":
            assert entity["name"], name
            assert entity["description"], name


def test_every_entity_can_be_reached_from_the_root(graph: dict[str, Any]) -> None:
    """Page "Metadata", principle 8."""
    reached, ahead = set[str](), ["./"]
    while ahead:
        name = ahead.pop()
        if name not in reached:
            reached.add(name)
            ahead += [one for value in graph[name].values() for one in links(value)]
    assert reached == set(graph) - {"ro-crate-metadata.json"}


def test_the_software_is_named_with_its_version(graph: dict[str, Any]) -> None:
    """Page "Provenance": an action names the software as its instrument."""
    action = graph["#making-of-the-annex"]
    assert action["@type"] == "CreateAction"
    software = graph[action["instrument"]["@id"]]
    assert software["@type"] == "SoftwareApplication"
    assert software["version"]
    assert {one["@id"] for one in action["result"]} == set(FILE_FACTS)


def test_a_listed_file_exists_and_an_absent_one_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "annex.html").write_bytes(b"text")
    crate = json.loads(ro_crate(tmp_path, read(), OfficerWords(), FILES, "2026-11-22"))
    files = [one["@id"] for one in crate["@graph"] if one["@type"] == "File"]
    assert files == ["annex.html", "#report.html"]
