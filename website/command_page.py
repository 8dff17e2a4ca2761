"""The page on commands: the help of each one."""

import inspect

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from overheard.cli.main import app
from website.site_markdown import cell, plain, table

_HEAD = """\
# Commands

Look up here what each command takes and writes. `overheard COMMAND --help` prints the same.

| exit code | meaning |
| --- | --- |
| 0 | done; for `check`, every rule passes |
| 1 | for `check`, a rule fails; for `verify`, a file was changed or is missing |
| 2 | an input is missing or wrong: the message says what to change; for `check`, also a rule \
on which nothing can be said |
| 130, 143 | stopped by Ctrl-C or by SIGTERM; the same command resumes an audit |
| 141 | the reader of the output has gone |
"""

_OPTION_OF_EVERY_COMMAND = "help"


def command_page() -> str:
    """Return the page on all commands."""
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    return _HEAD + "".join(_section(command) for command in group.commands.values())


def _section(command: TyperCommand) -> str:
    rows = [_row(one) for one in command.params if one.name != _OPTION_OF_EVERY_COMMAND]
    parameters = table(("argument or option", "meaning"), rows) if rows else ""
    return f"\n## `overheard {command.name}`\n\n{_help(command)}\n{parameters}"


def _help(command: TyperCommand) -> str:
    """Return the paragraphs of the help; those marked to keep their lines become code."""
    parts = []
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        lines = paragraph.splitlines()
        if lines and lines[0].strip() == "\b":
            heading, *code = [line.replace("\\[", "[") for line in lines[1:]]
            parts.append(f"{heading}\n\n```text\n{_code(code)}\n```")
        elif parts and parts[-1].endswith("```") and paragraph.startswith(" "):
            code = paragraph.replace("\\[", "[").splitlines()
            parts[-1] = f"{parts[-1][:-4]}\n\n{_code(code)}\n```"
        else:
            parts.append(plain(paragraph))
    return "\n\n".join(parts) + "\n"


def _code(lines: list[str]) -> str:
    """Return lines of code, without the two columns by which the help indents them."""
    return "\n".join(line.removeprefix("  ") for line in lines)


def _row(parameter: TyperArgument | TyperOption) -> tuple[str, str]:
    is_option = isinstance(parameter, TyperOption)
    names = ", ".join(parameter.opts) if is_option else (parameter.name or "").upper()
    return f"`{names}`", cell(getattr(parameter, "help", "") or "")
