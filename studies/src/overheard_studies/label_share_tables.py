"""Writes tables of docs/label-shares.md from stored values.

`python -m overheard_studies.label_share_tables` in the root of a checkout. A table stands
between `<!-- table NAME -->` and `<!-- end of table -->`.
"""

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from overheard.disk.writing import write_text
from overheard_studies.measurements.from_sums.federations import ALPHAS, RATES
from overheard_studies.membership_tables import STORED, Found, Tables, with_tables

PAGE = Path("docs/label-shares.md")

KINDS = {
    "replaced": "a tenth of the cohorts drawn anew",
    "exchanged": "a tenth of the cohorts exchanged",
    "new": "a fifth of the records new each round",
    "gradual": "all records change a little each round",
    "sudden": "all records change at once",
}
"""Kinds of deviations in the study `sums_deviations`, and their titles."""


def main() -> None:
    """Write the page anew."""
    page = with_tables(PAGE.read_text("utf-8"), STORED, TABLES)
    write_text(PAGE, page, inside=PAGE.parent)


def _deviations(found: Found) -> Iterator[str]:
    """Yield a row for each federation that was measured with each deviation."""
    titles = ("deviation", "rate, Dirichlet", "runs", "mean L1, of the guess", "coverage")
    columns = (*titles, "least of a run", "runs that doubt")
    yield f"| {' | '.join(columns)} |"
    yield "|" + "---|" * len(columns)
    for (kind, title), rate, alpha in product(KINDS.items(), RATES, ALPHAS):
        start = f"rate_{rate:g}_alpha_{alpha:g}_{kind}"
        if f"{start}_ratio" in found:
            yield _row(start, title, f"{rate:g}, {alpha:g}", found)
    yield _row("listener", "a client listens, cohorts known", "0.03, 0.5", found)
    known = "a client listens, cohorts and numbers of examples known"
    yield _row("listener_sizes", known, "0.03, 0.5", found)
    if found["listener_hidden_ratio"].value is None:
        yield "| a client listens, cohorts unknown | 0.03, 0.5 | 1 | refused | - | - | - |"


def _row(start: str, title: str, cell: str, found: Found) -> str:
    """Return the row of the values whose names start with this."""
    runs = re.search(r"(\d+) runs", found[f"{start}_ratio"].setting)
    ends = {"ratio": ".2f", "coverage": ".3f", "least_coverage": ".3f", "doubted": ".0f"}
    numbers = [
        format(value, form)
        for end, form in ends.items()
        if (value := found[f"{start}_{end}"].value) is not None
    ]
    return f"| {' | '.join((title, cell, runs[1] if runs else '-', *numbers))} |"


TABLES: Tables = {"sums_deviations": ("overheard-sums_deviations", _deviations)}
"""By name in the page: the folder of the stored values, and the lines of the table."""


if __name__ == "__main__":
    main()
