"""Boosted stumps for binary classification, by scikit-learn or by CatBoost."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from overheard.core.errors import NeedsError
from overheard.core.seeds import Seed

Booster = Literal["scikit-learn", "catboost"]

DEFAULT_STUMPS: dict[Booster, int] = {"scikit-learn": 300, "catboost": 10_000}
"""Default number of stumps; CatBoost's is that of FLiP (arXiv 2410.19548, VI-D2)."""

CATBOOST_MISSING = (
    "CatBoost is not installed: run pip install '.[membership]' in a checkout of Overheard, or "
    "omit booster to use scikit-learn"
)

LogOddsFunction = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""For each row, the log-odds that its label is True, given equal base rates."""


def check_booster(booster: Booster) -> None:
    """Check that the booster is installed.

    Raises:
        NeedsError: if it is not installed.

    """
    if booster == "catboost":
        _load_catboost()


def fit_boosted_stumps(
    rows: NDArray[np.float64],
    labels: NDArray[np.bool_],
    *,
    booster: Booster,
    stumps: int,
    seed: Seed,
) -> LogOddsFunction:
    """Fit trees of depth 1 by boosting on the log-loss.

    The log-odds of the base rate among the rows are subtracted from the predictions. Training
    uses one core, writes no files, and gives the same bits for the same seed. CatBoost chooses
    its learning rate from the number of rows and stumps; scikit-learn uses 0.1.

    Args:
        rows: features, one row per example.
        labels: the label of each row; both labels occur.
        booster: the library to use.
        stumps: number of stumps.
        seed: the seed of the training.

    Raises:
        NeedsError: if CatBoost is selected but not installed.

    """
    predict = (_fit_catboost if booster == "catboost" else _fit_scikit_learn)(
        rows, labels, stumps, seed.value % 2**31
    )
    base_log_odds = np.log(labels.mean() / (1 - labels.mean()))
    return lambda new_rows: predict(new_rows) - base_log_odds


def _fit_scikit_learn(
    rows: NDArray[np.float64], labels: NDArray[np.bool_], stumps: int, state: int
) -> LogOddsFunction:
    from sklearn.ensemble import HistGradientBoostingClassifier

    # class_weight is not used: with it, scikit-learn 1.9 spends most of its time on binning.
    model = HistGradientBoostingClassifier(
        max_depth=1, max_iter=stumps, early_stopping=False, random_state=state
    )
    log_odds: LogOddsFunction = model.fit(rows, labels).decision_function
    return log_odds


def _fit_catboost(
    rows: NDArray[np.float64], labels: NDArray[np.bool_], stumps: int, state: int
) -> LogOddsFunction:
    model = _load_catboost()(
        depth=1,
        iterations=stumps,
        random_seed=state,
        thread_count=1,
        allow_writing_files=False,
        logging_level="Silent",
    )
    model.fit(rows, labels.astype(np.int64))
    return lambda new_rows: np.asarray(
        model.predict(new_rows, prediction_type="RawFormulaVal", thread_count=1), np.float64
    )


# Any: CatBoost has no type hints.
def _load_catboost() -> Callable[..., Any]:
    try:
        from catboost import CatBoostClassifier
    except ImportError as missing:
        raise NeedsError(CATBOOST_MISSING) from missing
    classifier: Callable[..., Any] = CatBoostClassifier
    return classifier
