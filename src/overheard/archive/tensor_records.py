"""Records of arrays, into which a message may divide its tensors: a model, control variates."""

from collections.abc import Iterable


def group_by_record(names: Iterable[str]) -> dict[str, set[str]]:
    """Return the names of the tensors in each record, without that of the record.

    Tensors of a message with several records are named `record/tensor`. The record of other
    tensors is "".

    >>> group_by_record(["arrays/w"]), group_by_record(["w"])
    ({'arrays': {'w'}}, {'': {'w'}})
    """
    groups: dict[str, set[str]] = {}
    for name in names:
        record, has_record, tensor = name.partition("/")
        groups.setdefault(record if has_record else "", set()).add(
            tensor if has_record else name
        )
    return groups


def shares_records(update: Iterable[str], broadcast: Iterable[str]) -> bool:
    """Return whether an update has records of the broadcast, each with the same tensors.

    It may lack others, or have further ones.
    """
    sent, start = group_by_record(update), group_by_record(broadcast)
    common = sent.keys() & start.keys()
    return bool(common) and all(sent[record] == start[record] for record in common)
