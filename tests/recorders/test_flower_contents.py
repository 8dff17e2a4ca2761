import pytest

pytest.importorskip("flwr", reason="the extra flower is not installed")

from flwr.app import ConfigRecord, MetricRecord, RecordDict

from overheard.recorders.flower_contents import config_in, plain, told_in


def test_the_size_is_told_apart_from_the_other_numbers() -> None:
    content = RecordDict({"metrics": MetricRecord({"num-examples": 7, "loss": 0.5})})
    told = told_in(content)
    assert told.examples == 7
    assert told.metrics == {"loss": 0.5}
    assert not told.unrecorded


@pytest.mark.parametrize("size", [-1, 1.5, float("nan"), float("inf")])
def test_what_cannot_be_a_size_is_none(size: float) -> None:
    assert told_in(RecordDict({"m": MetricRecord({"num-examples": size})})).examples is None


def test_another_name_of_the_size_goes_before_flowers() -> None:
    content = RecordDict({"m": MetricRecord({"rows": 3, "num-examples": 7})})
    told = told_in(content, ("rows", "num-examples"))
    assert told.examples == 3
    assert told.metrics == {"num-examples": 7.0}


def test_lists_are_numbered_records_told_apart_and_what_has_no_place_is_named() -> None:
    content = RecordDict(
        {
            "a": MetricRecord({"loss": 1.0, "by-class": [0.5, 0.25]}),
            "b": MetricRecord({"loss": 2, "worst": float("nan")}),
            "c": ConfigRecord({"note": "text", "flag": True}),
        }
    )
    told = told_in(content)
    assert told.metrics == {
        "a/loss": 1.0,
        "by-class[0]": 0.5,
        "by-class[1]": 0.25,
        "b/loss": 2.0,
        "flag": 1.0,
    }
    assert told.unrecorded == ("worst", "note")


def test_a_configuration_is_told_as_text_and_bytes_by_their_number() -> None:
    content = RecordDict({"c": ConfigRecord({"lr": 0.1, "who": "a\nb", "key": b"1234"})})
    assert config_in(content) == {"lr": "0.1", "who": "a?b", "key": "<4 bytes>"}


def test_names_from_outside_are_made_harmless() -> None:
    assert plain("loss\x1b[2J\udc80") == "loss?[2J?"
    assert plain("x" * 300) == "x" * 200 + "..."
    hostile = RecordDict({"m": MetricRecord({"\x1b[2J": 1.0})})
    assert list(told_in(hostile).metrics) == ["?[2J"]
