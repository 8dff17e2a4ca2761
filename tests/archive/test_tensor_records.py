"""An update has whole records of the broadcast."""

from overheard.archive.tensor_records import group_by_record, shares_records


def test_tensors_are_grouped_by_the_record_in_their_name() -> None:
    found = group_by_record(["arrays/w", "arrays/b", "c/w", "free"])
    assert found == {"arrays": {"w", "b"}, "c": {"w"}, "": {"free"}}


def test_records_may_be_missing_or_added_but_not_changed() -> None:
    broadcast = ["arrays/w", "arrays/b", "c/w"]
    assert shares_records(["arrays/w", "arrays/b"], broadcast)
    assert shares_records(["arrays/w", "arrays/b", "d/w"], broadcast)
    assert not shares_records(["arrays/w", "c/w"], broadcast)
    assert not shares_records(["d/w"], broadcast)
    assert not shares_records(["w"], broadcast)


def test_tensors_without_a_record_are_one_record() -> None:
    assert shares_records(["w", "b", "c/w"], ["w", "b"])
    assert not shares_records(["w"], ["w", "b"])
