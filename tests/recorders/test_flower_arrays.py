import io

import numpy as np
import pytest
import torch

pytest.importorskip("flwr", reason="the extra flower is not installed")

from flwr.app import Array, ArrayRecord, RecordDict

from overheard.recorders.flower_arrays import SERIALIZED, Decoder, Packed, parts_of, size_of


def packed(numbers: np.ndarray, dtype: str = "") -> Packed:
    file = io.BytesIO()
    np.save(file, numbers, allow_pickle=True)
    return Packed(dtype or str(numbers.dtype), SERIALIZED, file.getvalue())


def test_a_change_is_what_came_back_minus_what_was_sent_in_the_precision_it_came_in() -> None:
    decoder = Decoder()
    start = {"w": packed(np.array([[1.0, 2.0]], np.float32))}
    decoder.model(start)
    sent = {"w": packed(np.array([[1.5, 1.0]], np.float16))}
    change = decoder.change(sent, start)
    assert change["w"].tolist() == [[0.5, -1.0]]
    assert change["w"].dtype == torch.float16


@pytest.mark.parametrize("dtype", [">f4", "<f8", "<f2"])
def test_reads_floats_of_any_order_and_layout(dtype: str) -> None:
    numbers = np.asfortranarray(np.arange(6, dtype=dtype).reshape(2, 3))
    model = Decoder().model({"w": packed(numbers), "s": packed(np.array(2, dtype))})
    assert model["w"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert model["s"].item() == 2
    assert model["w"].is_contiguous()
    empty = Decoder().model({"w": packed(np.zeros((0, 3), dtype))})
    assert empty["w"].shape == (0, 3)


def test_bfloat16_keeps_its_kind() -> None:
    # NumPy writes what it does not know as two bytes without a meaning.
    half = torch.tensor([1.0, -2.5, 3.0], dtype=torch.bfloat16)
    moved = half + 0.5
    start, sent = (
        {"w": packed(one.view(torch.int16).numpy().view("V2"), "bfloat16")}
        for one in (half, moved)
    )
    decoder = Decoder()
    assert torch.equal(decoder.model(start)["w"], half)
    change = decoder.change(sent, start)["w"]
    assert change.dtype == torch.bfloat16
    assert change.tolist() == [0.5, 0.5, 0.5]


def test_a_counter_is_left_out_also_when_an_average_made_a_float_of_it() -> None:
    decoder = Decoder()
    counter, weight = packed(np.array(3)), packed(np.ones(2, np.float32))
    first = decoder.model({"seen": counter, "w": weight})
    assert not first["seen"].is_floating_point()
    averaged = {"seen": packed(np.array(3.5)), "w": weight}
    assert list(decoder.model(averaged)) == ["w"]
    assert list(decoder.change({"seen": counter, "w": weight}, averaged)) == ["w"]
    assert list(Decoder(["seen"]).model(averaged)) == ["w"]


@pytest.mark.parametrize(
    ("part", "why"),
    [
        (packed(np.array([{}], object)), "Python objects"),
        (packed(np.array([(1, {})], [("a", "i4"), ("b", "O")])), "Python objects"),
        (Packed("float32", "pickle", b""), "serialized as 'pickle'"),
        (Packed("float32", SERIALIZED, b"nonsense"), "no .npy file"),
        (Packed("float32", SERIALIZED, b""), "no .npy file"),
        (Packed("float32", SERIALIZED, packed(np.ones(3)).data[:-1]), "23 bytes"),
        (Packed("float32", SERIALIZED, packed(np.ones(3)).data + b"x"), "25 bytes"),
        (
            Packed("f", SERIALIZED, packed(np.ones(3)).data.replace(b"(3,)", b"-3, ")),
            "no .npy file",
        ),
        (
            Packed("f", SERIALIZED, packed(np.ones(3)).data.replace(b"(3,)", b"(((")),
            "no .npy file",
        ),
    ],
)
def test_refuses_what_is_no_plain_array(part: Packed, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Decoder().model({"w": part})


def test_refuses_tensors_that_were_not_sent_and_other_shapes() -> None:
    decoder, one = Decoder(), packed(np.ones(2, np.float32))
    with pytest.raises(ValueError, match="'v' that it was not sent, and not 'w'"):
        decoder.change({"v": one}, {"w": one})
    with pytest.raises(ValueError, match=r"\(2, 1\)"):
        decoder.change({"w": packed(np.ones((2, 1), np.float32))}, {"w": one})


def test_several_records_of_arrays_are_told_apart_and_later_changes_do_not_show() -> None:
    array = Array(np.ones(2, np.float32))
    alone = RecordDict({"arrays": ArrayRecord({"w": array})})
    before = parts_of(alone)
    assert list(before) == ["w"]
    alone["arrays"] = ArrayRecord({"w": Array(np.zeros(2, np.float32))})
    assert before["w"].data == array.data
    assert size_of(before) == len(array.data)
    two = RecordDict({"a": ArrayRecord({"w": array}), "b": ArrayRecord({"w": array})})
    assert list(parts_of(two)) == ["a/w", "b/w"]
