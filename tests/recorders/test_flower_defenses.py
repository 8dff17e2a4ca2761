import math

import pytest

pytest.importorskip("flwr", reason="the extra flower is not installed")

from flwr.clientapp.mod import LocalDpMod, fixedclipping_mod
from flwr.serverapp import (
    NeighboringRelation,
    PrivacyConfig,
    RdpAccountant,
    SamplingMethod,
)
from flwr.serverapp.strategy import (
    DifferentialPrivacyClientSideAdaptiveClipping,
    DifferentialPrivacyClientSideFixedClipping,
    DifferentialPrivacyServerSideAdaptiveClipping,
    DifferentialPrivacyServerSideFixedClipping,
    FedAvg,
)

from overheard.archive.manifest import DefenseRecord
from overheard.core.mechanism import Mechanism
from overheard.recorders.flower_defenses import DELTA, defense_records, stated_defenses


def mechanism_of(defense: object) -> Mechanism:
    (record,) = defense_records([defense])
    assert record.mechanism is not None
    return record.mechanism


def test_local_dp_adds_the_configured_noise_at_the_client() -> None:
    (record,) = defense_records([LocalDpMod(2.0, 1.0, 10.0, 1e-5)])
    # 1 * sqrt(2 ln(1.25 / 1e-5)) / 10 = 0.48448, over a clip of 2.
    found = record.mechanism
    assert found.noise_multiplier == pytest.approx(0.24224, abs=1e-5)
    assert (found.clip, found.delta, found.stated, found.stated_for) == (2, 1e-5, 10, "round")
    assert (found.noised_at, found.bounded_at) == ("client", "client")
    assert found.covers(("server",))
    assert record.enforced_at == "client"
    assert "the distributor of the client app" in record.switched_off_by
    assert record.settings == (
        "LocalDpMod(clipping_norm=2.0, sensitivity=1.0, epsilon=10.0, delta=1e-05)"
    )


def test_a_small_sensitivity_means_little_noise() -> None:
    found = mechanism_of(LocalDpMod(1.0, 1e-4, 10.0, 1e-5))
    assert found.noise_multiplier == pytest.approx(4.8448e-5, rel=1e-4)
    assert found.stated == 10


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 1e-5), (1.0, 0.0), (1.0, 1.0)])
def test_invalid_settings_are_recorded_without_a_mechanism(
    epsilon: float, delta: float
) -> None:
    (record,) = defense_records([LocalDpMod(1.0, 1.0, epsilon, delta)])
    assert record.mechanism is None
    assert repr(epsilon) in record.settings


@pytest.mark.parametrize(
    ("strategy", "bounded_at"),
    [
        (DifferentialPrivacyServerSideFixedClipping, "server"),
        (DifferentialPrivacyClientSideFixedClipping, "client"),
    ],
)
def test_fixed_clipping_adds_noise_after_the_server_reads_updates(
    strategy: type, bounded_at: str
) -> None:
    (record,) = defense_records([strategy(FedAvg(), 1.5, 0.5, 10)])
    found = record.mechanism
    assert (found.noise_multiplier, found.clip, found.delta) == (1.5, 0.5, DELTA)
    assert (found.noised_at, found.bounded_at) == ("server", bounded_at)
    assert not found.covers(("server",))
    assert found.covers(("client/1",))
    assert record.name == strategy.__name__
    assert "the server" in record.switched_off_by


def test_without_an_accountant_client_weights_are_unbounded() -> None:
    strategy = DifferentialPrivacyServerSideFixedClipping(FedAvg(), 1.0, 1.0, 10)
    assert "accountant" in mechanism_of(strategy).unproven


def test_with_an_accountant_the_guarantee_uses_its_relation_and_delta() -> None:
    pytest.importorskip("dp_accounting", reason="the extra dp is not installed")
    config = PrivacyConfig(
        1e-6,
        100,
        NeighboringRelation.ADD_OR_REMOVE_ONE,
        SamplingMethod.NO_AMPLIFICATION,
        max_epsilon=8.0,
    )
    strategy = DifferentialPrivacyServerSideFixedClipping(
        FedAvg(), 1.0, 1.0, 10, accountant=RdpAccountant(config)
    )
    found = mechanism_of(strategy)
    assert not found.flaw
    assert (found.delta, found.moves, found.stated, found.stated_for) == (1e-6, 1, 8.0, "run")


@pytest.mark.parametrize(
    "strategy",
    [
        DifferentialPrivacyServerSideAdaptiveClipping,
        DifferentialPrivacyClientSideAdaptiveClipping,
    ],
)
def test_adaptive_clipping_accounts_for_all_that_a_round_releases(strategy: type) -> None:
    made = strategy(FedAvg(), 0.8, 20, 0.3)
    # Flower adds more noise to the mean, so that mean and count together match the setting.
    assert made.noise_multiplier > 0.8
    found = mechanism_of(made)
    assert math.isclose(found.noise_multiplier, 0.8)
    assert found.clip == 0.3


def test_adaptive_clipping_without_noise_has_multiplier_0() -> None:
    strategy = DifferentialPrivacyServerSideAdaptiveClipping(FedAvg(), 0.0, 20)
    assert mechanism_of(strategy).noise_multiplier == 0


def test_no_defenses_may_be_stated_and_unknown_ones_are_not_none() -> None:
    assert stated_defenses(None) == ((), False)
    assert stated_defenses([]) == ((), True)
    assert stated_defenses([FedAvg()]) == ((), False)
    records, are_stated = stated_defenses(iter([fixedclipping_mod]))
    assert [one.name for one in records] == ["fixedclipping_mod"]
    assert are_stated


def test_accepts_custom_records_and_warns_of_unknown_defenses(
    caplog: pytest.LogCaptureFixture,
) -> None:
    custom = DefenseRecord("ours", "ours()", "client", "each client")
    found = defense_records([custom, fixedclipping_mod, FedAvg()])
    assert [one.name for one in found] == ["ours", "fixedclipping_mod"]
    assert "FedAvg is no defense" in caplog.text
