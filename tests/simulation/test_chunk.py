import numpy as np
import pytest

from overheard.core.prior import Prior
from overheard.core.seeds import Seed
from overheard.data.splits.quantity import Quantity
from overheard.simulation.chunk import CHUNK, MOST_MEMBERS, chunks_of
from tests.simulation.world import RECIPE, Spy, knowledge

SIZES = (10, 60)


def drawn(virtual: int, members: int | None = None, **known):
    return chunks_of(knowledge(virtual=virtual, **known), SIZES, members, Seed(3))


class TestClients:
    def test_are_as_many_as_asked_for_in_chunks_of_a_fixed_width(self) -> None:
        assert [len(chunk.clients) for chunk in drawn(70)] == [CHUNK, CHUNK, 6]

    def test_learn_from_the_halves_in_turn(self) -> None:
        (chunk,) = drawn(5)
        assert [client.half for client in chunk.clients] == [0, 1, 0, 1, 0]

    def test_are_the_same_ones_and_others_when_more_are_asked_for(self) -> None:
        few, many = drawn(20)[0].clients, drawn(50)[0].clients
        assert many[:20] == few

    @pytest.mark.slow
    def test_follow_all_recipes_that_are_thought_of(self) -> None:
        prior = Prior(recipes=(RECIPE, RECIPE, RECIPE))
        known = knowledge(virtual=60, prior=prior)
        unknown = type(known)(3, known.build_model, known.auxiliary, None, None, prior)
        clients = chunks_of(unknown, SIZES, None, Seed(3))[0].clients
        assert {client.recipe for client in clients} == {0, 1, 2}

    def test_are_drawn_once_for_all_attacks(self) -> None:
        shelf = Spy()
        assert drawn(40, shelf=shelf) == drawn(40, shelf=shelf)
        assert len(shelf.saved) == 1

    def test_of_another_prior_are_others(self) -> None:
        shelf = Spy()
        mixed = drawn(40, shelf=shelf)
        assert drawn(40, shelf=shelf, prior=Prior((Quantity(1),))) != mixed


class TestCohorts:
    def test_have_members_of_one_half_and_one_recipe_none_twice(self) -> None:
        for chunk in drawn(70, members=5):
            for own in chunk.makers():
                assert len(own) == len(set(own)) == 5
                assert len({client.half for client in own}) == 1
                assert len({client.recipe for client in own}) == 1

    def test_are_as_many_as_asked_for_and_learn_from_both_halves(self) -> None:
        for virtual in (2, 9, 70):
            halves = [own[0].half for c in drawn(virtual, members=5) for own in c.makers()]
            assert len(halves) == virtual
            assert set(halves) == {0, 1}

    def test_leave_out_half_of_the_chunk_at_least(self) -> None:
        for chunk in drawn(10, members=20):
            assert len(chunk.clients) == 40

    def test_of_too_many_members_are_played_by_fewer(self) -> None:
        chunk = drawn(2, members=1000)[0]
        assert [len(own) for own in chunk.makers()] == [MOST_MEMBERS]

    def test_of_one_member_are_single_clients(self) -> None:
        assert all(len(own) == 1 for chunk in drawn(40, members=1) for own in chunk.makers())

    def test_that_lean_differ_more_in_make_up_than_those_at_random(self) -> None:
        # Of clients with one label each, the mean of ten random ones is near a third each;
        # of ten who lean to one label, nearly all of that label.
        prior = Prior((Quantity(1),))
        largest: dict[int, list[float]] = {0: [], 1: []}
        for chunk in drawn(64, members=8, prior=prior):
            for place, own in enumerate(chunk.makers()):
                counts = np.array([client.counts for client in own]).sum(0)
                largest[place % 2].append(counts.max() / counts.sum())
        assert np.mean(largest[0]) < 0.75
        assert np.mean(largest[1]) > 0.9


@pytest.mark.parametrize("members", [None, 4])
def test_another_seed_draws_others(members: int | None) -> None:
    one, other = (chunks_of(knowledge(), SIZES, members, Seed(value)) for value in (1, 2))
    assert one != other
