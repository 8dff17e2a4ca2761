import numpy as np
import pytest

from overheard.core.knowledge import Prior
from overheard.core.seeds import Seed
from overheard.data.splits.quantity import Quantity
from overheard.simulation.chunk import CHUNK, MAX_COHORT_SIZE, draw_chunks
from tests.simulation.small_run import RECIPE, CountingCache, knowledge

SIZES = (10, 60)


def draw(virtual: int, members: int | None = None, **settings):
    return draw_chunks(knowledge(virtual=virtual, **settings), SIZES, members, Seed(3))


class TestClients:
    def test_are_as_many_as_requested_in_chunks_of_fixed_size(self) -> None:
        assert [len(chunk.clients) for chunk in draw(70)] == [CHUNK, CHUNK, 6]

    def test_train_on_the_halves_in_turn(self) -> None:
        (chunk,) = draw(5)
        assert [client.half for client in chunk.clients] == [0, 1, 0, 1, 0]

    def test_requesting_more_keeps_the_first_ones(self) -> None:
        few, many = draw(20)[0].clients, draw(50)[0].clients
        assert many[:20] == few

    @pytest.mark.slow
    def test_follow_all_possible_recipes(self) -> None:
        prior = Prior(recipes=(RECIPE, RECIPE, RECIPE))
        attacker = knowledge(virtual=60, prior=prior)
        unknown = type(attacker)(3, attacker.build_model, attacker.auxiliary, None, None, prior)
        clients = draw_chunks(unknown, SIZES, None, Seed(3))[0].clients
        assert {client.recipe for client in clients} == {0, 1, 2}

    def test_are_drawn_once_for_all_attacks(self) -> None:
        cache = CountingCache()
        assert draw(40, shelf=cache) == draw(40, shelf=cache)
        assert len(cache.saved) == 1

    def test_depend_on_the_prior(self) -> None:
        cache = CountingCache()
        mixed = draw(40, shelf=cache)
        assert draw(40, shelf=cache, prior=Prior((Quantity(1),))) != mixed


class TestCohorts:
    def test_have_different_members_of_one_half_and_one_recipe(self) -> None:
        for chunk in draw(70, members=5):
            for members_drawn in chunk.clients_per_reading():
                assert len(members_drawn) == len(set(members_drawn)) == 5
                assert len({client.half for client in members_drawn}) == 1
                assert len({client.recipe for client in members_drawn}) == 1

    def test_are_as_many_as_requested_and_from_both_halves(self) -> None:
        for virtual in (2, 9, 70):
            halves = [
                members_drawn[0].half
                for c in draw(virtual, members=5)
                for members_drawn in c.clients_per_reading()
            ]
            assert len(halves) == virtual
            assert set(halves) == {0, 1}

    def test_have_at_most_half_of_their_chunk(self) -> None:
        for chunk in draw(10, members=20):
            assert len(chunk.clients) == 40

    def test_of_many_members_are_simulated_by_fewer(self) -> None:
        chunk = draw(2, members=1000)[0]
        assert [len(members_drawn) for members_drawn in chunk.clients_per_reading()] == [
            MAX_COHORT_SIZE
        ]

    def test_of_one_member_are_single_clients(self) -> None:
        assert all(
            len(members_drawn) == 1
            for chunk in draw(40, members=1)
            for members_drawn in chunk.clients_per_reading()
        )

    def test_with_a_preference_differ_more_in_label_shares(self) -> None:
        # Clients have one label each. Random cohorts have about a third of each label; cohorts
        # with a preference have mostly one label.
        prior = Prior((Quantity(1),))
        largest: dict[int, list[float]] = {0: [], 1: []}
        for chunk in draw(64, members=8, prior=prior):
            for place, members_drawn in enumerate(chunk.clients_per_reading()):
                counts = np.array([client.counts for client in members_drawn]).sum(0)
                largest[place % 2].append(counts.max() / counts.sum())
        assert np.mean(largest[0]) < 0.75
        assert np.mean(largest[1]) > 0.9


@pytest.mark.parametrize("members", [None, 4])
def test_clients_depend_on_the_seed(members: int | None) -> None:
    one, other = (draw_chunks(knowledge(), SIZES, members, Seed(value)) for value in (1, 2))
    assert one != other
