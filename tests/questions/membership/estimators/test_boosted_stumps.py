import sys

import numpy as np
import pytest
from numpy.typing import NDArray

from overheard.core.errors import NeedsError
from overheard.core.seeds import Seed
from overheard.questions.membership.attacks.shadow_membership import (
    Booster,
    check_booster,
    fit_boosted_stumps,
)


def rows(count: int, share: float, seed: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Two columns: one is two deviations higher for True, the other is noise."""
    draw = np.random.default_rng(seed)
    kinds = draw.random(count) < share
    return np.stack([draw.normal(2.0 * kinds), draw.normal(size=count)], 1), kinds


def boosters() -> list[Booster]:
    try:
        check_booster("catboost")
    except NeedsError:
        return ["scikit-learn"]
    return ["scikit-learn", "catboost"]


@pytest.mark.parametrize("booster", boosters())
@pytest.mark.parametrize("share", [0.5, 0.1])
def test_log_odds_are_those_of_two_normals_for_any_base_rate(
    booster: Booster, share: float
) -> None:
    log_odds = fit_boosted_stumps(
        *rows(4000, share, 0), booster=booster, stumps=200, seed=Seed(0)
    )
    where = np.array([[x, 0.0] for x in (0.0, 0.5, 1.0, 1.5, 2.0)])
    # The log-odds of N(2, 1) against N(0, 1) are 2 x - 2.
    assert log_odds(where) == pytest.approx([-2.0, -1.0, 0.0, 1.0, 2.0], abs=0.6)
    aside = log_odds(np.array([[1.0, -1.0], [1.0, 1.0]]))
    assert abs(float(aside[0] - aside[1])) < 0.4


@pytest.mark.parametrize("booster", boosters())
def test_the_same_seed_gives_the_same_bits_and_writes_no_file(
    booster: Booster, tmp_path, monkeypatch, capfd
) -> None:
    monkeypatch.chdir(tmp_path)
    data, kinds = rows(300, 0.5, 1)
    first, again = (
        fit_boosted_stumps(data, kinds, booster=booster, stumps=50, seed=Seed(7))(data)
        for _ in range(2)
    )
    assert (first == again).all()
    assert not list(tmp_path.iterdir())
    assert capfd.readouterr() == ("", "")


def test_the_error_for_a_missing_extra_says_what_to_install(monkeypatch) -> None:
    # With this entry, Python treats the module as missing even if it is installed.
    monkeypatch.setitem(sys.modules, "catboost", None)
    check_booster("scikit-learn")
    with pytest.raises(NeedsError, match=r"pip install '\.\[membership\]'"):
        check_booster("catboost")
    with pytest.raises(NeedsError, match=r"'\.\[membership\]'"):
        fit_boosted_stumps(*rows(20, 0.5, 3), booster="catboost", stumps=1, seed=Seed(0))
