"""Writes the table of docs/adapters.md from stored values.

`python -m overheard_studies.adapter_tables` in the root of a checkout. A table stands between
`<!-- table NAME -->` and `<!-- end of table -->`.
"""

from collections.abc import Iterator
from pathlib import Path

from overheard.disk.writing import write_text
from overheard_studies.measurements.adapter_leaks import TRAINED
from overheard_studies.membership_tables import STORED, Found, Tables, with_tables

PAGE = Path("docs/adapters.md")

COLUMNS = {
    "words": "users_{row}_combined_rows_rare_word_precision",
    "membership": "records_{row}_whitened_membership_membership_auc",
    "label shares": "shares_{row}_amortised_l1",
    "label shares, by outputs": "shares_{row}_mean_softmax_l1",
    "identity": "users_{row}_reidentify_wccn_top1",
}
"""The titles of columns, and the names of their values."""


def main() -> None:
    """Write the page anew."""
    page = with_tables(PAGE.read_text("utf-8"), STORED, TABLES)
    write_text(PAGE, page, inside=PAGE.parent)


def _leaks(found: Found) -> Iterator[str]:
    """Yield a row for each part that is trained, with guess and control of each score."""
    titles = ("trained", *COLUMNS)
    yield f"| {' | '.join(titles)} |"
    yield "|" + "---|" * len(titles)
    for row, trained in TRAINED.items():
        cells = [_cell(found, name.format(row=row)) for name in COLUMNS.values()]
        if any(one != NOTHING for one in cells):
            yield f"| {trained.title} | {' | '.join(cells)} |"


NOTHING = "not measured"


def _cell(found: Found, name: str) -> str:
    """Return a score with its interval, its guess and its control; or that it was refused."""
    if name not in found:
        refused = (one.removesuffix("_refused") for one in found if one.endswith("_refused"))
        return "refused" if any(name.startswith(one) for one in refused) else NOTHING
    value, guess, control = (found[f"{name}{end}"] for end in ("", "_guess", "_control"))
    interval = f"[{_plain(value.low)}, {_plain(value.high)}]"
    return f"{_plain(value.value)} {interval} ({_plain(guess.value)}; {_plain(control.value)})"


def _plain(number: float | None) -> str:
    """Return a number as the page writes it, without the 0 before the point."""
    return "–" if number is None else f"{number:.2f}".replace("0.", ".", 1)


TABLES: Tables = {"leaks": ("overheard-adapter_leaks", _leaks)}

if __name__ == "__main__":
    main()
