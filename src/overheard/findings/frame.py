"""The columns of a table of findings, and the DataFrame that has them."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from overheard.core.scorer import Score

if TYPE_CHECKING:
    import pandas

COLUMNS: Mapping[str, str] = {
    "arm": "string",
    "seed": "int64",
    "observers": "string",
    "attack": "string",
    "settings": "string",
    "question": "string",
    "rounds": "object",
    "target": "string",
    "score": "string",
    "better": "string",
    "value": "float64",
    "blind": "float64",
    "gain": "float64",
    "blind guesses": "object",
    "told guesses": "object",
    "claimed": "object",
    "true": "object",
    "low": "object",
    "high": "object",
    "is_control": "bool",
    "true_since": "Int64",
    "since": "Int64",
    "alarm": "Int64",
    "named": "string",
    "none_of_them": "float64",
    "true_user": "string",
}
"""By column, in order: its dtype in a DataFrame. `findings.csv` has the same columns."""


def score_cells(score: Score | None) -> dict[str, object]:
    """The columns that tell of one score; None = there is none to tell of."""
    if score is None:
        return {}
    return {
        "score": score.name,
        "better": score.better,
        "value": score.value,
        "blind": score.blind,
        "gain": score.gain,
        "blind guesses": dict(score.blinds),
        "told guesses": dict(score.references),
    }


def typed_frame(
    rows: Sequence[Mapping[str, object]], columns: Sequence[str] = tuple(COLUMNS)
) -> "pandas.DataFrame":
    """The rows as a DataFrame with these columns, each of its dtype even if there is no row.

    What a row lacks is missing: NaN in a column of floats, None in one of objects, else NA.
    """
    import pandas

    return pandas.DataFrame(
        {
            name: pandas.Series([row.get(name) for row in rows], dtype=COLUMNS[name])
            for name in columns
        }
    )
