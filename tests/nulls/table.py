"""The table of false "leaks": for each question, source and split, and why nothing leaks."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scipy.stats import binom

from overheard.core.errors import PlanError
from overheard.statistics.judgement import VERDICT_LEVEL
from tests.nulls.audits import Federation, audit_null

SURE = 0.999
"""A right test is above the limit in one of a thousand cells."""


def most_false(verdicts: int) -> int:
    """Return the largest number of false "leaks" of a right test among so many verdicts.

    >>> most_false(33), most_false(120)
    (5, 9)
    """
    return int(binom.ppf(SURE, verdicts, VERDICT_LEVEL))


@dataclass
class CellCounts:
    """What the audits of a cell said.

    Args:
        verdicts: the number of each verdict, of those that might have been a false "leaks".
        others: the number of verdicts that might not, and of audits that were refused.

    """

    verdicts: Counter[str] = field(default_factory=Counter)
    others: int = 0

    @property
    def tested(self) -> int:
        """The number of verdicts that might have been a false "leaks"."""
        return self.verdicts.total()

    @property
    def false_leaks(self) -> int:
        """The number of verdicts that were."""
        return self.verdicts["leaks"]

    @property
    def is_too_high(self) -> bool:
        """Whether the cell says "leaks" more often than a right test."""
        return self.false_leaks > most_false(self.tested)


Cell = tuple[str, str, str, str]
"""Question, source, split and null."""


@dataclass(frozen=True)
class Results:
    """The results of audits in a file, one a line, so that a stopped run goes on.

    Args:
        path: the file.

    """

    path: Path

    def done(self) -> set[tuple[str, int]]:
        """Return the audits that the file has, by the name of the federation and the number."""
        return {(line["federation"], line["number"]) for line in self._lines()}

    def audit(self, federation: Federation, number: int) -> None:
        """Make an audit and add its verdicts."""
        try:
            found = audit_null(federation, number)
            verdicts = [[one.question, one.verdict, one.is_tested] for one in found]
            line = {"federation": federation.name, "number": number, "verdicts": verdicts}
        except PlanError as error:
            # A draw that runs short of examples is no verdict.
            line = {"federation": federation.name, "number": number, "refused": str(error)}
        # A line that a killed run left half written ends here.
        text = self.path.read_text("utf-8") if self.path.exists() else ""
        begin = "" if not text or text.endswith("\n") else "\n"
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{begin}{json.dumps(line)}\n")

    def counts(self, wanted: Iterable[Federation]) -> dict[Cell, CellCounts]:
        """Return what the audits of these federations said, by cell."""
        federations = {one.name: one for one in wanted}
        counts = {
            (question, one.source.name, one.split, one.null): CellCounts()
            for one in federations.values()
            for question in one.questions
        }
        for line in self._lines():
            federation = federations.get(line["federation"])
            if federation is None:
                continue
            refused = [[question, "refused", False] for question in federation.questions]
            for question, verdict, is_tested in line.get("verdicts", refused):
                place = (question, federation.source.name, federation.split, federation.null)
                if is_tested:
                    counts[place].verdicts[verdict] += 1
                else:
                    counts[place].others += 1
        return counts

    # Any: lines of JSON.
    def _lines(self) -> list[dict[str, Any]]:
        if not self.path.exists():
            return []
        lines = self.path.read_text("utf-8").splitlines()
        return [json.loads(line) for line in lines if line.endswith("}")]


def table_lines(counts: dict[Cell, CellCounts]) -> list[str]:
    """Return the table, a line for each cell."""
    lines = [
        f"{'question':13} {'source':11} {'split':10} {'null':6} "
        f"{'verdicts':>8} {'leaks':>5} {'most':>5} {'untested':>8}"
    ]
    for (question, source, split, null), cell in sorted(counts.items()):
        mark = "  TOO HIGH" if cell.is_too_high else ""
        lines.append(
            f"{question:13} {source:11} {split:10} {null:6} {cell.tested:8} "
            f"{cell.false_leaks:5} {most_false(cell.tested):5} {cell.others:8}{mark}"
        )
    tested = sum(cell.tested for cell in counts.values())
    leaks = sum(cell.false_leaks for cell in counts.values())
    lines.append(f"in all {tested} verdicts, {leaks} leaks, at most {most_false(tested)}")
    return lines
