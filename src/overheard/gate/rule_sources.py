"""Where each rule of a policy is written: its file and line."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from overheard.gate.policy import Policy, PolicyRule

_HEADER = re.compile(r"\s*\[\[\s*(verdicts|leaks|epsilons|costs)\s*\]\]")


@final
@dataclass(frozen=True, slots=True)
class RuleSources:
    """The file that the rules come from, and their lines.

    Args:
        path: the file.
        lines: line of each rule in the file, counted from 1, by the rule's name; rules whose
            line is not known are absent.

    """

    path: Path
    lines: Mapping[str, int] = field(default_factory=dict)

    @property
    def shown_path(self) -> str:
        """The path relative to the current folder; only the name if it lies outside.

        A report does not tell how the folders of a machine are called.
        """
        relative = os.path.relpath(self.path.resolve(), Path.cwd().resolve())
        is_inside = not relative.startswith("..") and not os.path.isabs(relative)
        return Path(relative).as_posix() if is_inside else self.path.name


def rule_sources(policy: Policy, path: Path, text: str) -> RuleSources:
    """Return the lines of a policy's rules in the text of its TOML file.

    Parsed TOML has no lines, so the headers of tables are searched for. Where their number is
    not that of the rules, such as for rules in an inline array, no line is known.
    """
    found: dict[str, list[int]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        header = _HEADER.match(line)
        if header:
            found.setdefault(header[1], []).append(number)
    tables: dict[str, tuple[PolicyRule, ...]] = {
        "verdicts": policy.verdicts,
        "leaks": policy.leaks,
        "epsilons": policy.epsilons,
        "costs": policy.costs,
    }
    lines = {
        rule.name: line
        for table, rules in tables.items()
        if len(found.get(table, ())) == len(rules)
        for rule, line in zip(rules, found.get(table, ()), strict=True)
    }
    return RuleSources(path, lines)
