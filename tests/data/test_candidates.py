import pytest
import torch

from overheard.core.errors import PlanError
from overheard.core.seeds import Seed
from overheard.data.candidates import Candidates, ask_about

HELD = (torch.arange(10), torch.arange(10, 13))


def asked(
    members: int = 5,
    outsiders: int = 20,
    size: int = 60,
    twice: tuple[int, ...] = (),
    records: torch.Tensor | None = None,
):
    free = torch.ones(size, dtype=torch.bool)
    free[13:20] = False  # the attacker's
    once = torch.ones(size, dtype=torch.bool)
    once[list(twice)] = False
    return ask_about(Candidates(members, outsiders), HELD, free, once, Seed(0), records)


def test_so_many_of_each_client_and_of_nobody_are_asked_about() -> None:
    told = asked()
    assert len(told.rows) == 5 + 3 + 20 == len(set(told.rows.tolist()))
    assert [len(own) for own in told.members] == [5, 3]
    for own, held in zip(told.members, HELD, strict=True):
        assert set(told.rows[list(own)].tolist()) <= set(held.tolist())
    rest = set(range(28)) - {place for own in told.members for place in own}
    assert set(told.rows[list(rest)].tolist()) == set(told.outsiders.tolist())


def test_outsiders_are_nobodys() -> None:
    assert set(asked(outsiders=40).outsiders.tolist()) == set(range(20, 60))


def test_records_that_there_are_copies_of_are_not_asked_about() -> None:
    told = asked(members=10, outsiders=39, twice=(0, 1, 25))
    assert [len(own) for own in told.members] == [8, 3]
    assert not {0, 1, 25} & set(told.rows.tolist())


def test_nothing_cut_out_of_a_members_record_is_an_outsider() -> None:
    # Records of four examples each: 12 is a client's, so 13 to 15 are half in; 20 on are not.
    told = asked(outsiders=40, records=torch.arange(60) // 4)
    assert set(told.outsiders.tolist()) == set(range(20, 60))
    records = torch.arange(60)
    records[[25, 30]] = 0
    told = asked(outsiders=38, records=records)
    assert set(told.outsiders.tolist()) == set(range(20, 60)) - {25, 30}


def test_the_order_tells_nothing() -> None:
    places = [place for own in asked(members=10, outsiders=10).members for place in own]
    assert sorted(places) != list(range(13))
    assert max(places) > 12


def test_too_few_that_nobody_holds_are_told() -> None:
    with pytest.raises(PlanError, match="41 outsiders are wanted, and nobody holds 40"):
        asked(outsiders=41)


@pytest.mark.parametrize("settings", [(0, 1), (1, 0)])
def test_a_question_with_one_answer_is_refused(settings) -> None:
    with pytest.raises(ValueError, match="members and outsiders are 1 or more"):
        Candidates(*settings)
