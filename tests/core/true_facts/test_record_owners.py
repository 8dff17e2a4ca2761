"""Owners of records keep their meaning under new names, unless a client has several."""

from overheard.auditing.attack_runner import Pseudonyms
from overheard.core.parties import Party, client
from overheard.core.true_facts.record_owners import RecordOwners

OWNERS = RecordOwners({client(0): (0, 3), client(1): (1,)})
ONE, TWO, LATER = Party("anon/0-0"), Party("anon/0-1"), Party("anon/1-0")


def test_the_pseudonyms_of_a_single_round_own_the_records_of_their_clients() -> None:
    named = OWNERS.renamed(Pseudonyms({(0, client(0)): TWO, (0, client(1)): ONE}))
    assert named == RecordOwners({TWO: (0, 3), ONE: (1,)})


def test_records_of_clients_without_a_pseudonym_count_as_neither() -> None:
    named = OWNERS.renamed(Pseudonyms({(0, client(1)): ONE}))
    assert named == RecordOwners({ONE: (1,)}, frozenset({0, 3}))


def test_a_record_has_no_single_owner_if_a_client_has_several_names() -> None:
    assert OWNERS.renamed(Pseudonyms({(0, client(0)): ONE, (1, client(0)): LATER})) is None
