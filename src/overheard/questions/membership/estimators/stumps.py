"""Boosted stumps that tell two kinds of rows apart, by scikit-learn or by CatBoost."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier

from overheard.core.errors import NeedsError
from overheard.core.seeds import Seed

Booster = Literal["scikit-learn", "catboost"]

STUMPS: dict[Booster, int] = {"scikit-learn": 300, "catboost": 10_000}
"""Boosted where nobody says how many; CatBoost's as FLiP (arXiv 2410.19548, VI-D2) has it."""

MISSING = (
    "CatBoost: pip install 'overheard[membership]', or leave out booster for scikit-learn's"
)

LogOdds = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""For each row, the log-odds that it is of the kind True, were both kinds as frequent."""


def check_booster(booster: Booster) -> None:
    """See that it is installed.

    Raises:
        NeedsError: if it is not.

    """
    if booster == "catboost":
        _catboost()


def boosted(
    rows: NDArray[np.float64],
    kinds: NDArray[np.bool_],
    *,
    booster: Booster,
    stumps: int,
    seed: Seed,
) -> LogOdds:
    """Trees of depth 1, boosted on the log-loss.

    What they learn are log-odds given how frequent the kinds are among the rows; those of the
    frequencies are taken off again. One core, no files, the same bits for the same seed.
    CatBoost chooses its own rate by the number of rows and stumps, scikit-learn has 0.1.

    Args:
        rows: numbers, one row an example.
        kinds: of each row; both kinds are there.
        booster: whose.
        stumps: how many.
        seed: of the draws.

    Raises:
        NeedsError: if CatBoost is asked for and not installed.

    """
    learned = (_by_catboost if booster == "catboost" else _by_scikit_learn)(
        rows, kinds, stumps, seed.value % 2**31
    )
    beforehand = np.log(kinds.mean() / (1 - kinds.mean()))
    return lambda told: learned(told) - beforehand


def _by_scikit_learn(
    rows: NDArray[np.float64], kinds: NDArray[np.bool_], stumps: int, state: int
) -> LogOdds:
    # Not by class_weight, which makes scikit-learn 1.9 take most of its time to bin the rows.
    model = HistGradientBoostingClassifier(
        max_depth=1, max_iter=stumps, early_stopping=False, random_state=state
    )
    log_odds: LogOdds = model.fit(rows, kinds).decision_function
    return log_odds


def _by_catboost(
    rows: NDArray[np.float64], kinds: NDArray[np.bool_], stumps: int, state: int
) -> LogOdds:
    model = _catboost()(
        depth=1,
        iterations=stumps,
        random_seed=state,
        thread_count=1,
        allow_writing_files=False,
        logging_level="Silent",
    )
    model.fit(rows, kinds.astype(np.int64))
    return lambda told: np.asarray(
        model.predict(told, prediction_type="RawFormulaVal", thread_count=1), np.float64
    )


# Any: CatBoost tells mypy of no types.
def _catboost() -> Callable[..., Any]:
    try:
        from catboost import CatBoostClassifier
    except ImportError as missing:
        raise NeedsError(MISSING) from missing
    classifier: Callable[..., Any] = CatBoostClassifier
    return classifier
