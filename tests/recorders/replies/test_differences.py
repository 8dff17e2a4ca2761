"""One rule says which update a reply means."""

import pytest
import torch

from overheard.recorders.replies.differences import UnstorableError, read_update

START = {"w": torch.tensor([1.0, 2.0]), "b": torch.tensor([4.0])}


def test_weights_are_subtracted_and_differences_are_not() -> None:
    sent = {"w": torch.tensor([1.5, 1.0]), "b": torch.tensor([4.25])}
    assert read_update(sent, START).delta["w"].tolist() == [0.5, -1.0]
    assert read_update(sent, START, "differences").delta["w"].tolist() == [1.5, 1.0]


def test_gradients_are_taken_times_the_rate_against_their_direction() -> None:
    sent = {"w": torch.tensor([2.0, -4.0]), "b": torch.tensor([0.0])}
    assert read_update(sent, START, "gradients", 0.5).delta["w"].tolist() == [-1.0, 2.0]
    with pytest.raises(ValueError, match="need the rate"):
        read_update(sent, START, "gradients")


def test_a_half_is_widened_before_it_is_subtracted() -> None:
    # As float16 the difference would be -2048.
    start, sent = (torch.tensor([n], dtype=torch.float16) for n in (2.0**11, 2.0**-10))
    delta = read_update({"w": sent}, {"w": start}).delta["w"]
    assert delta.tolist() == [2.0**-10 - 2.0**11]
    assert delta.dtype == torch.float32


def test_codes_are_refused_without_a_scale_and_scaled_with_one() -> None:
    start, codes = {"w": START["w"]}, {"w": torch.tensor([127, -2], dtype=torch.int8)}
    with pytest.raises(UnstorableError, match="'w' arrived as int8"):
        read_update(codes, start)
    for scales in (0.5, {"w": 0.5}):
        assert read_update(codes, start, "differences", scales=scales).delta["w"].tolist() == [
            63.5,
            -1.0,
        ]
        assert read_update(codes, start, scales=scales).delta["w"].tolist() == [62.5, -3.0]
    with pytest.raises(UnstorableError):
        read_update(codes, start, scales={"another": 0.5})


def test_counters_have_no_difference_unless_the_model_has_floats_of_them() -> None:
    counter = {"seen": torch.tensor(3)}
    update = read_update({**START, **counter}, {**START, "seen": torch.tensor(2)})
    assert list(update.delta) == ["w", "b"]
    averaged = {**START, "seen": torch.tensor(2.5)}
    assert read_update({**START, **counter}, averaged).delta["seen"].item() == 0.5


def test_absent_tensors_are_unchanged_and_extra_ones_left_out_and_both_are_named() -> None:
    update = read_update({"w": START["w"] + 1, "x": torch.ones(3)}, START)
    assert {name: one.tolist() for name, one in update.delta.items()} == {
        "w": [1.0, 1.0],
        "b": [0.0],
    }
    assert (update.absent, update.extra) == (("b",), ("x",))


def test_refuses_a_reply_of_another_model() -> None:
    with pytest.raises(ValueError, match="extra 'v', missing 'b', 'w'"):
        read_update({"v": torch.ones(2)}, START)
    with pytest.raises(ValueError, match=r"'w' has shape \(1,\), but \(2,\)"):
        read_update({"w": torch.ones(1)}, START)
