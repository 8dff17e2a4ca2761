"""The skill file for coding agents names commands and options that exist."""

import re
from pathlib import Path

import typer

from overheard.cli.main import app

SKILL = Path(__file__).parents[1] / "integrations" / "agents" / "SKILL.md"

COMMAND = re.compile(r"^ *`overheard ((?:plan )?[a-z]+)(.*)`", re.MULTILINE)


def options_of(path: str) -> set[str]:
    """The options of a command, such as "plan check"."""
    command = typer.main.get_command(app)
    for name in path.split():
        assert hasattr(command, "commands")
        command = command.commands[name]
    return {word for one in command.params for word in one.opts}


def test_each_command_of_the_skill_file_has_the_options_that_it_names() -> None:
    named = COMMAND.findall(SKILL.read_text())
    assert {"review", "init", "plan check", "audit", "doctor", "check"} <= {
        path for path, _ in named
    }
    for path, rest in named:
        given = set(re.findall(r"--[a-z-]+", rest))
        assert given <= options_of(path), path
        # Programs read JSON; `release` makes a folder.
        assert "--json" in given or path == "release", path
