"""The columns of a table of findings, and their DataFrame."""

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
    "best guess": "float64",
    "gain": "float64",
    "uninformed guesses": "object",
    "informed guesses": "object",
    "claimed": "object",
    "true": "object",
    "low": "object",
    "high": "object",
    "is_control": "bool",
    "control": "string",
    "control_number": "int64",
    "true_since": "Int64",
    "since": "Int64",
    "alarm": "Int64",
    "named": "string",
    "none_of_them": "float64",
    "true_user": "string",
}
"""The dtype of each column in a DataFrame, in order. `findings.csv` has the same columns."""


def score_columns(score: Score | None) -> dict[str, object]:
    """Return the columns of one score; none if there is no score."""
    if score is None:
        return {}
    return {
        "score": score.name,
        "better": score.better,
        "value": score.value,
        "best guess": score.best_uninformed,
        "gain": score.gain,
        "uninformed guesses": dict(score.uninformed),
        "informed guesses": dict(score.references),
    }


def typed_frame(
    rows: Sequence[Mapping[str, object]], columns: Sequence[str] = tuple(COLUMNS)
) -> "pandas.DataFrame":
    """Return a DataFrame with these columns; each has its dtype even without rows.

    Values that a row does not have are NaN in float columns, None in object columns, else NA.
    """
    import pandas

    return pandas.DataFrame(
        {
            name: pandas.Series([row.get(name) for row in rows], dtype=COLUMNS[name])
            for name in columns
        }
    )
