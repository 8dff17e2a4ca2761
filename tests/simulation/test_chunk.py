import numpy as np

from overheard.core.knowledge import Prior
from overheard.core.seeds import Seed
from overheard.data.splits.quantity import Quantity
from overheard.simulation.chunk import draw_chunks
from tests.simulation.small_run import CountingCache, knowledge

SIZES = (10, 60)


def draw(virtual: int, members: int | None = None, **settings):
    return draw_chunks(knowledge(virtual=virtual, **settings), SIZES, members, Seed(3))


class TestClients:
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
