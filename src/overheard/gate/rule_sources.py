"""Where each rule of a policy is written: its file and line."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from overheard.gate.policy import Policy, PolicyRule

_HEADER = re.compile(r"\s*\[\[\s*(verdicts|leaks|epsilons|costs|sums)\s*\]\]")


@final
@dataclass(frozen=True, slots=True)
class RuleSources:
    """The file of a policy, and the line of each rule in it.

    Args:
        path: the file.
        lines: by the name of a rule, its line in the file, counted from 1; rules whose line is
            not known are absent.

    """

    path: Path
    lines: Mapping[str, int] = field(default_factory=dict)

    @property
    def shown_path(self) -> str:
        """The path from the current folder; only the name if the file is outside of it.

        Thus no report contains the names of other folders.
        """
        relative = os.path.relpath(self.path.resolve(), Path.cwd().resolve())
        is_inside = not relative.startswith("..") and not os.path.isabs(relative)
        return Path(relative).as_posix() if is_inside else self.path.name


def find_rule_sources(policy: Policy, path: Path, text: str) -> RuleSources:
    """Find the line of each rule of a policy in the text of its TOML file.

    Parsed TOML has no line numbers, so headers such as `[[leaks]]` are searched for in the
    text. If a table has more or fewer headers than rules, as with an inline array, the lines of
    its rules stay unknown.
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
        "sums": policy.sums,
    }
    lines = {
        rule.name: line
        for table, rules in tables.items()
        if len(found.get(table, ())) == len(rules)
        for rule, line in zip(rules, found.get(table, ()), strict=True)
    }
    return RuleSources(path, lines)
