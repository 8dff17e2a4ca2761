"""The line of each rule is the line of its header, or unknown."""

from pathlib import Path

import pytest

from overheard.gate.policy import Policy
from overheard.gate.rule_sources import RuleSources, rule_sources
from overheard.plans.strict_model import parse_toml

TEXT = """# A policy.
[[verdicts]]
name = "a"

 [[ costs ]]  # spaced
name = "b"
bytes_at_most = 1
[[verdicts]]
name = "c"
"""


def lines(text: str) -> dict[str, int]:
    policy = parse_toml(Policy, text, "p", "policy")
    return dict(rule_sources(policy, Path("p"), text).lines)


def test_each_rule_has_the_line_of_its_header() -> None:
    assert lines(TEXT) == {"a": 2, "c": 8, "b": 5}


def test_rules_in_an_inline_array_have_no_line() -> None:
    inline = 'verdicts = [{name = "a"}]\n[[costs]]\nname = "b"\nbytes_at_most = 1\n'
    assert lines(inline) == {"b": 2}


def test_a_header_inside_a_text_gives_no_wrong_line() -> None:
    assert lines('[[verdicts]]\nname = """\n[[verdicts]]\n"""\n') == {}


def test_the_path_is_shown_relative_to_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = tmp_path / "work"
    inside.mkdir()
    monkeypatch.chdir(inside)
    assert RuleSources(inside / "ci" / "p.toml").shown_path == "ci/p.toml"
    assert RuleSources(Path("ci/../p.toml")).shown_path == "p.toml"
    assert RuleSources(tmp_path / "p.toml").shown_path == "p.toml"
