import os
from pathlib import Path

import pytest

from overheard.auditing.inputs import Resources, load_data, partition_for_plan
from overheard.auditing.run_kinds import run_kinds
from overheard.core.parties import COHORT, client
from overheard_studies.shift.paper import PAPER
from overheard_studies.shift.setting import (
    CENSUS,
    CLIENTS,
    FASHION_MNIST,
    LEAKAGE_SOURCES,
    LOSS,
    MNIST,
    ShiftScenario,
    build_centralized_plan,
    build_federated_plan,
    format_ratio,
    plan_target,
)

IMAGES, USERS = (6700, 4400, 2600, 1300), (3900, 2600, 1500, 800)

# Rounds, the paper's s counted from 0, and sizes for 2, 3, 5, 10 clients.
PUBLISHED = [
    pytest.param(MNIST, 20, 10, IMAGES, id="mnist"),
    pytest.param(FASHION_MNIST, 40, 20, IMAGES, id="fashion_mnist"),
    pytest.param(CENSUS, 100, 50, USERS, id="census"),
]


@pytest.mark.parametrize(("scenario", "rounds", "since", "sizes"), PUBLISHED)
def test_a_full_federation_has_the_papers_settings(
    scenario: ShiftScenario, rounds: int, since: int, sizes: tuple[int, ...]
) -> None:
    for index, clients in enumerate(CLIENTS):
        plan = build_federated_plan(scenario, scenario.full, clients, 0.7, LEAKAGE_SOURCES)
        assert plan.training.rounds == rounds
        assert plan.data.examples == sizes[index]
        assert (plan.training.optimizer, plan.training.rate) == ("adam", 1e-4)
        assert plan.training.epochs == 2
        assert {shift.round for shift in plan.data.shifts} == {since}
        # Twice the paper's three.
        assert len(plan.seeds) == 6


def test_three_of_ten_clients_shift_else_one_and_never_the_observer() -> None:
    for clients, shifting in ((2, 1), (3, 1), (5, 1), (10, 3)):
        plan = build_federated_plan(MNIST, MNIST.full, clients, 0.7, (LOSS,))
        shifted = {shift.client for shift in plan.data.shifts}
        assert len(shifted) == shifting
        assert 0 not in shifted
        assert plan.threats[0].observer_parties == (client(0),)
        assert plan_target(plan) == COHORT


def test_the_shift_has_the_ratio_of_even_labels() -> None:
    (shift,) = build_federated_plan(CENSUS, CENSUS.full, 2, 0.6, (LOSS,)).data.shifts
    # Label 0 is even, label 1 odd.
    assert shift.weights == pytest.approx((0.6, 0.4))
    (shift,) = build_federated_plan(MNIST, MNIST.full, 2, 0.6, (LOSS,)).data.shifts
    assert shift.weights == pytest.approx((0.6, 0.4) * 5)


def test_every_audit_has_a_control_with_the_same_label_counts() -> None:
    for plan in (
        build_federated_plan(MNIST, MNIST.full, 2, 0.7, (LOSS,)),
        build_centralized_plan(MNIST, MNIST.full, 0.8, (LOSS,)),
    ):
        assert [kind.draws for kind in run_kinds(plan)] == ["", "exact"]


def test_a_centralized_model_is_one_client_with_one_epoch_observed_by_the_server() -> None:
    plan = build_centralized_plan(MNIST, MNIST.full, 0.8, LEAKAGE_SOURCES)
    assert (plan.data.clients, plan.training.epochs) == (1, 1)
    assert plan.data.examples == 6700
    assert plan_target(plan) == client(0)


def test_variations_change_the_batch_or_make_the_shift_the_second_exchange() -> None:
    studies = PAPER.studies()
    for quick in (False, True):
        (batch,) = studies["figure5_batch_128"].plans(quick=quick).values()
        assert batch.training.batch == 128
        plans = [
            plan
            for name in ("figure5_exchanges", "figure8_exchanges")
            for plan in studies[name].plans(quick=quick).values()
        ]
        for plan in plans:
            assert plan.data.shifts[0].round == 2 * (plan.data.refresh_every or 0)


def test_the_tracking_attack_has_at_least_as_many_examples_as_a_client() -> None:
    for scenario in (MNIST, FASHION_MNIST, CENSUS):
        for size in (scenario.full, scenario.reduced):
            plan = build_federated_plan(scenario, size, 2, 0.7, (LOSS,))
            assert (len(plan.threats) == 2) == (size.virtual is not None)
            if size.virtual is not None:
                assert plan.data.auxiliary is not None
                assert plan.data.auxiliary >= size.examples[2]


def test_a_ratio_is_formatted_as_in_the_paper() -> None:
    assert (format_ratio(0.7), format_ratio(0.55)) == ("70-30", "55-45")


@pytest.mark.skipif("OVERHEARD_DATA" not in os.environ, reason="needs the data sets")
def test_the_data_set_has_all_examples_that_two_clients_exchange() -> None:
    two, *_ = PAPER.studies()["figure8_exchanges"].panels
    plan = two.plan(False)
    assert plan is not None
    assert plan.data.clients == 2
    dataset = load_data(plan, Resources(Path(os.environ["OVERHEARD_DATA"])))
    for seed in plan.seeds:
        partition = partition_for_plan(plan, dataset, seed)
        assert len(partition.rows) == plan.training.rounds
