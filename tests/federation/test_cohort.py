from dataclasses import dataclass, replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.defense import DefenseContext
from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.parties import client, shadow_device
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.federation.cohort import (
    CLIENT_FAILED,
    NO_EXAMPLES,
    defense_context,
    draw_round_copies,
    sample_cohort,
)
from overheard.federation.federation import Federation
from overheard.federation.sampling import clients_per_round, sampling_rate
from tests.federation.conftest import ClientDefense


@dataclass(frozen=True)
class Mirror(ClientDefense):
    """Duplicates a client's examples with the other label."""

    name = "mirror"

    def on_data(self, data: Examples, context: DefenseContext) -> Examples:
        return Examples(
            torch.cat([data.inputs, data.inputs]), torch.cat([data.labels, 1 - data.labels])
        )


@dataclass(frozen=True)
class DropZeros(ClientDefense):
    """Removes all examples of class 0."""

    def on_data(self, data: Examples, context: DefenseContext) -> Examples:
        return data.take(data.labels != 0)


@dataclass(frozen=True)
class Witness(ClientDefense):
    """Replaces the examples by the previous chunk, or by none."""

    def on_data(self, data: Examples, context: DefenseContext) -> Examples:
        if context.previous_data is None:
            return data.take(torch.arange(0))
        age = context.round - context.previous_data.replaced_in_round
        return Examples(
            context.previous_data.examples.inputs, torch.full_like(data.labels, age)
        )


@dataclass(frozen=True)
class Lasting(ClientDefense):
    """Replaces all examples by one public example, drawn once for the party."""

    name = "lasting"

    def on_data(self, data: Examples, context: DefenseContext) -> Examples:
        assert context.background is not None
        draws = context.persistent_seed.generator()
        return context.background.take(torch.randint(1000, (1,), generator=draws))


@pytest.mark.parametrize(("share", "count"), [(0.001, 1), (0.25, 5), (0.5, 10), (1.0, 20)])
def test_samples_a_share_of_the_clients_and_at_least_one(
    crowd: Federation, share: float, count: int
) -> None:
    sampled = draw_round_copies(replace(crowd, participation=share), 0)
    assert len(set(sampled)) == count
    assert list(sampled) == sorted(sampled)


@given(st.integers(0, 2**62))
def test_a_sampled_client_either_trains_or_is_missing(seed: int) -> None:
    pool = Examples(torch.zeros(20, 1), torch.zeros(20, dtype=torch.int64))
    federation = Federation(
        build_model=torch.nn.Identity,
        model="none",
        task=Task((1,), ("no", "yes")),
        recipe=Recipe(rate=1.0, epochs=1, batch=8),
        pool=pool,
        rows=[[torch.tensor([index]) for index in range(20)]],
        test=pool,
        rounds=1,
        seed=Seed(seed),
        participation=0.5,
        failure_rate=0.5,
    )
    cohort = sample_cohort(federation, 0)
    answering = {task.name for task in cohort.clients}
    assert not answering & set(cohort.missing)
    sampled = {client(index) for index in draw_round_copies(federation, 0)}
    assert answering | set(cohort.missing) == sampled


def test_clients_fail_at_the_failure_rate(crowd: Federation) -> None:
    # 60 draws at 0.3 expect 18 failures, with a deviation of sqrt(60 * 0.3 * 0.7) = 3.5.
    failing = replace(crowd, failure_rate=0.3)
    failures = [sample_cohort(failing, number).missing for number in range(3)]
    assert 8 <= sum(len(missing) for missing in failures) <= 28
    assert {reason for missing in failures for reason in missing.values()} == {CLIENT_FAILED}
    assert len({tuple(missing) for missing in failures}) == 3


def test_a_client_without_examples_is_missing_with_its_reason(small: Federation) -> None:
    rows = [torch.tensor([], dtype=torch.int64), torch.tensor([1])]
    cohort = sample_cohort(replace(small, rows=[rows] * 2), 0)
    assert cohort.missing == {client(0): NO_EXAMPLES}
    assert [task.name for task in cohort.clients] == [client(1)]


def test_clients_train_on_examples_changed_by_a_defense(
    small: Federation,
) -> None:
    cohort = sample_cohort(replace(small, defenses=(Mirror(),)), 0)
    examples = [cohort.pool.take(task.rows) for task in cohort.clients]
    assert [one.labels.tolist() for one in examples] == [[0, 1], [1, 1, 1, 0, 0, 0]]
    assert [one.inputs.flatten().tolist() for one in examples] == [[2.0] * 2, [4.0] * 6]
    assert small.pool.labels.tolist() == [0, 1, 1, 1]


def test_a_shadow_device_trains_on_unchanged_examples_unless_it_is_defended(
    small: Federation,
) -> None:
    # Client 1 is now the server's device: the last of two parties.
    mixed = replace(small, shadows=1, defenses=(Mirror(),))
    plain, defended = (
        sample_cohort(replace(mixed, are_shadows_defended=is_defended), 0)
        for is_defended in (False, True)
    )
    assert [task.name for task in plain.clients] == [client(0), shadow_device(0)]
    assert [len(task.rows) for task in plain.clients] == [2, 3]
    assert [len(task.rows) for task in defended.clients] == [2, 6]
    own = plain.pool.take(plain.clients[1].rows)
    assert own.inputs.equal(small.pool.inputs[1:])


def test_defenses_of_the_data_act_in_order(small: Federation) -> None:
    # If mirrored first, client 0 keeps the mirrored half; if dropped first, nothing.
    after = sample_cohort(replace(small, defenses=(Mirror(), DropZeros())), 0)
    assert [len(task.rows) for task in after.clients] == [1, 3]
    before = sample_cohort(replace(small, defenses=(DropZeros(), Mirror())), 0)
    assert [len(task.rows) for task in before.clients] == [6]
    assert before.missing == {client(0): NO_EXAMPLES}


def test_a_defense_of_the_data_gets_the_previous_chunk_and_its_age(
    crowd: Federation,
) -> None:
    # The 20 clients exchange in rounds 2 and 3 of 5; client 7 holds rows 70 to 79 until then.
    first = list(torch.arange(200).split(10))
    second, third = [rows.flip(0) for rows in first], first[1:] + first[:1]
    rows = [first, first, second, third, third]
    rounds = replace(crowd, rows=rows, rounds=5, defenses=(Witness(),))
    assert sample_cohort(rounds, 0).missing == sample_cohort(rounds, 1).missing
    assert len(sample_cohort(rounds, 1).missing) == 20
    for number, before, age in ((2, first, 0), (3, second, 0), (4, second, 1)):
        cohort = sample_cohort(rounds, number)
        examples = cohort.pool.take(cohort.clients[7].rows)
        assert torch.equal(examples.inputs, crowd.pool.inputs[before[7]])
        assert examples.labels.tolist() == [age] * 10


def test_the_sampling_rate_is_from_the_view_of_another_client() -> None:
    # Of 10 clients 3 are asked: one of the 7 others knows that they are among 9.
    assert sampling_rate(10, 0.3) == pytest.approx(3 / 9)
    assert sampling_rate(2, 0.5) == 1.0
    assert sampling_rate(1, 0.5) == sampling_rate(4, 1.0) == 1.0
    assert clients_per_round(2, 0.1) == 1


def test_a_defense_of_the_data_gets_the_background_and_a_seed_for_all_rounds(
    crowd: Federation,
) -> None:
    background = Examples(torch.arange(1000.0)[:, None], torch.zeros(1000, dtype=torch.int64))
    public = replace(crowd, background=background, defenses=(Lasting(),))
    examples = [
        sample_cohort(public, number).pool.inputs.flatten().tolist() for number in range(3)
    ]
    assert examples[0] == examples[1] == examples[2]
    # Twenty draws of a thousand.
    assert len(set(examples[0])) >= 15
    with pytest.raises(PlanError, match="defense lasting: on_data failed"):
        sample_cohort(replace(public, background=None), 0)


def test_the_lasting_seed_depends_on_defense_party_and_federation(
    small: Federation,
) -> None:
    federations = (small, replace(small, seed=Seed(6)))
    moments = [
        [
            defense_context(federation, defense, number, party)
            for federation in federations
            for defense in (Mirror(), DropZeros())
            for party in small.clients
        ]
        for number in (0, 1)
    ]
    lasting = [[one.persistent_seed for one in each] for each in moments]
    assert lasting[0] == lasting[1]
    assert len(set(lasting[0])) == 8
    assert not set(lasting[0]) & {one.seed for each in moments for one in each}
