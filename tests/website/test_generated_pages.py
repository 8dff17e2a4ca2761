"""Pages that are written from the code hold everything that the code has."""

import re
import tomllib
from dataclasses import fields
from functools import cache

import pytest
import typer

import overheard
from overheard.cli.main import app
from overheard.gate.policy_schema import policy_schema
from overheard.plans.registries import REGISTRIES
from overheard.plans.schema.plan_schema import plan_tables, schema_tables
from overheard.report.terms import read_terms
from overheard_studies.reproduce import find_papers
from website.generated_pages import generated_pages

written = cache(generated_pages)


@pytest.mark.parametrize(
    ("page", "tables"),
    [
        ("plan-reference.md", plan_tables()),
        ("policy-reference.md", schema_tables(policy_schema())),
    ],
)
def test_a_reference_has_every_key_with_meaning_and_default(page, tables):
    keys = re.compile(r"^### [^\n]*\{#(\S+)\}$\n(.*?)(?=^##|\Z)", re.DOTALL | re.MULTILINE)
    sections = dict(keys.findall(written()[page]))
    for table in tables:
        for name in table.keys:
            path = ".".join(filter(None, (table.path, name))).replace(".", "-")
            text = sections[path]
            assert "- Holds: " in text
            assert "- Default: " in text or "- **required**" in text
            meaning = text.strip().splitlines()[0]
            assert meaning[0].isupper() or not meaning[0].isalpha()
            assert len(meaning) > 10


@pytest.mark.parametrize(
    ("page", "few"), [("plan-reference.md", 70), ("policy-reference.md", 40)]
)
def test_every_example_of_a_reference_is_toml(page: str, few: int):
    examples = re.findall(r"```toml\n(.*?)```", written()[page], re.S)
    assert len(examples) > few
    for example in examples:
        assert tomllib.loads(example)


@pytest.mark.parametrize("kind", REGISTRIES, ids=lambda kind: kind.name)
def test_every_plugin_has_a_section_with_its_source(kind):
    if kind.name == "scorers":
        return  # a question's page tells what its scorer does
    for name, plugin in kind.plugins().items():
        section = re.search(
            rf"^## `{name}`(.*?)(?=^## |\Z)", written()[f"{kind.name}.md"], re.S | re.M
        )
        assert section is not None
        assert "**Source:**" in section[1]
        assert f"[`{name}`](#{name})" in written()[f"{kind.name}.md"]
        for field in fields(plugin):
            assert f"| `{field.name}` |" in section[1]


def test_every_public_name_is_on_the_page_on_python():
    for name in dir(overheard):
        assert f"`{name}`" in written()["api.md"], name


def test_every_command_is_told_with_every_option():
    group = typer.main.get_command(app)
    assert isinstance(group, typer.core.TyperGroup)
    for name, command in group.commands.items():
        section = written()["commands.md"].partition(f"## `overheard {name}`\n")[2]
        section = section.split("\n## ")[0]
        for option in command.params:
            if isinstance(option, typer.core.TyperOption):
                assert all(one in section for one in option.opts), (name, option.name)


def test_every_term_is_on_the_glossary():
    for term in read_terms():
        assert f"- **{term.name}**: " in written()["glossary.md"], term.name


def test_every_experiment_of_every_paper_is_named():
    for name, paper in find_papers().items():
        for key in paper.studies():
            assert f"`{name}/{key}`" in written()["papers.md"]
