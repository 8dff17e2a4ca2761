"""What attackers know of single subjects, as far as it is drawn with the data."""

from overheard.core.facts import Facts
from overheard.core.knowledge import KnownFact
from overheard.core.known_facts.candidate_records import CandidateRecords
from overheard.data.dataset import Dataset
from overheard.data.partition.data_partition import DataPartition


def drawn_facts(
    dataset: Dataset, partition: DataPartition, *, are_crafted: bool = False
) -> Facts[KnownFact]:
    """Return known users, candidate records and words of tokens, as far as there are any.

    Args:
        dataset: the data.
        partition: which client holds which of them.
        are_crafted: whether the plan asks for canaries with crafted gradients.

    """
    run_users, records = partition.run_users, partition.candidates
    facts = (
        None if run_users is None else run_users.known,
        None if records is None else CandidateRecords(records, are_crafted),
        dataset.known_token_words(),
    )
    return Facts(*(fact for fact in facts if fact is not None))
