"""Manifest records of NVFlare's filters."""

import math
import re

import numpy as np
import pytest

pytest.importorskip("nvflare")

from nvflare.apis.dxo import DXO, DataKind
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable
from nvflare.app_common.filters.exclude_vars import ExcludeVars
from nvflare.app_common.filters.percentile_privacy import PercentilePrivacy
from nvflare.app_common.filters.svt_privacy import SVTPrivacy

from overheard.recorders.nvflare import RecordingFilter
from overheard.recorders.nvflare_defenses import AT_SERVER, AT_SITES, defenses_of


def test_records_filters_in_order_with_their_settings() -> None:
    percentile, excluded = defenses_of(
        [RecordingFilter("run"), PercentilePrivacy(20, 0.5), ExcludeVars("^head")]
    )
    assert percentile.name == "percentile_privacy"
    assert percentile.settings.startswith("PercentilePrivacy(percentile=20, gamma=0.5")
    assert excluded.settings.startswith("ExcludeVars(exclude_vars='^head'")
    assert (percentile.enforced_at, percentile.switched_off_by) == ("client", AT_SITES)
    assert percentile.mechanism is excluded.mechanism is None


def test_a_filter_at_the_server_is_enforced_there() -> None:
    (defense,) = defenses_of([SVTPrivacy()], at_server=True)
    assert (defense.enforced_at, defense.switched_off_by) == ("server", AT_SERVER)
    assert defense.mechanism.noised_at == defense.mechanism.bounded_at == "server"


def test_states_the_epsilon_of_the_selection_and_the_cost_of_values() -> None:
    (defense,) = defenses_of([SVTPrivacy(epsilon=0.1, noise_var=0.1)], weights=2410)
    assert defense.mechanism.stated == 0.1
    # 10 % of 2,410 values at 0.1 each, as NVFlare's own accountant adds them up.
    assert "24.1 more a round (241 values of 2410)" in defense.mechanism.unproven


def test_the_noise_agrees_with_the_filter() -> None:
    # All 40,000 values are sent, each clipped and with noise.
    gamma, weights = 0.25, 40_000
    svt = SVTPrivacy(fraction=1.0, noise_var=2.0, gamma=gamma, replace=False)
    np.random.seed(3)  # noqa: NPY002 - the only generator that the filter draws from
    dxo = DXO(DataKind.WEIGHT_DIFF, {"w": np.zeros(weights)})
    noised = svt.process_dxo(dxo, Shareable(), FLContext())
    (defense,) = defenses_of([svt], weights=weights)
    deviation = defense.mechanism.noise_multiplier * defense.mechanism.clip
    # Laplace of scale 2 gamma / noise_var = 0.25; deviation sqrt(2) as large.
    assert deviation == pytest.approx(math.sqrt(2) * 0.25)
    assert float(noised.data["w"].std()) == pytest.approx(deviation, rel=0.05)
    assert defense.mechanism.clip == pytest.approx(gamma * math.sqrt(weights))


def test_the_filter_accepts_more_values_than_its_noise_covers() -> None:
    # As `unproven` states: the noise covers c = 100, but in one pass about half of 1,000
    # values are above the threshold, since the noise is far larger than they are.
    svt = SVTPrivacy(fraction=0.1, gamma=1.0)
    logged: list[str] = []
    svt.log_debug = lambda _, text, **__: logged.append(text)
    np.random.seed(3)  # noqa: NPY002 - the only generator that the filter draws from
    dxo = DXO(DataKind.WEIGHT_DIFF, {"w": np.zeros(1000)})
    svt.process_dxo(dxo, Shareable(), FLContext())
    (accepted,) = re.findall(r"total (\d+)/100", " ".join(logged))
    assert int(accepted) > 400
