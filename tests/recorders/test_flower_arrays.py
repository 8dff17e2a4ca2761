import io

import numpy as np
import pytest
import torch

from overheard.recorders.flower_arrays import (
    NPY_SERIALIZATION,
    ArrayDecoder,
    PackedArray,
)


def packed(numbers: np.ndarray, dtype: str = "") -> PackedArray:
    file = io.BytesIO()
    np.save(file, numbers, allow_pickle=True)
    return PackedArray(dtype or str(numbers.dtype), NPY_SERIALIZATION, file.getvalue())


def test_subtracts_in_the_wider_type_of_reply_and_broadcast() -> None:
    decoder = ArrayDecoder()
    start = {"w": packed(np.array([[1.0, 2.0]], np.float32))}
    decoder.decode_model(start)
    sent = {"w": packed(np.array([[1.5, 1.0]], np.float16))}
    change = decoder.decode_update(sent, start).delta
    assert change["w"].tolist() == [[0.5, -1.0]]
    assert change["w"].dtype == torch.float32


@pytest.mark.parametrize("dtype", [">f4", "<f8", "<f2"])
def test_reads_floats_of_any_order_and_layout(dtype: str) -> None:
    numbers = np.asfortranarray(np.arange(6, dtype=dtype).reshape(2, 3))
    model = ArrayDecoder().decode_model({"w": packed(numbers), "s": packed(np.array(2, dtype))})
    assert model["w"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert model["s"].item() == 2
    assert model["w"].is_contiguous()
    empty = ArrayDecoder().decode_model({"w": packed(np.zeros((0, 3), dtype))})
    assert empty["w"].shape == (0, 3)


def test_reads_bfloat16_and_widens_differences() -> None:
    # NumPy writes what it does not know as two bytes without a meaning.
    half = torch.tensor([1.0, -2.5, 3.0], dtype=torch.bfloat16)
    moved = half + 0.5
    start, sent = (
        {"w": packed(one.view(torch.int16).numpy().view("V2"), "bfloat16")}
        for one in (half, moved)
    )
    decoder = ArrayDecoder()
    assert torch.equal(decoder.decode_model(start)["w"], half)
    change = decoder.decode_update(sent, start).delta["w"]
    assert change.dtype == torch.float32
    assert change.tolist() == [0.5, 0.5, 0.5]


def test_omits_a_counter_even_if_averaging_made_it_a_float() -> None:
    decoder = ArrayDecoder()
    counter, weight = packed(np.array(3)), packed(np.ones(2, np.float32))
    first = decoder.decode_model({"seen": counter, "w": weight})
    assert not first["seen"].is_floating_point()
    averaged = {"seen": packed(np.array(3.5)), "w": weight}
    assert list(decoder.decode_model(averaged)) == ["w"]
    update = decoder.decode_update({"seen": counter, "w": weight}, averaged)
    assert list(update.delta) == ["w"]
    assert list(ArrayDecoder(["seen"]).decode_model(averaged)) == ["w"]


@pytest.mark.parametrize(
    ("part", "why"),
    [
        (packed(np.array([{}], object)), "Python objects"),
        (packed(np.array([(1, {})], [("a", "i4"), ("b", "O")])), "Python objects"),
        (PackedArray("float32", "pickle", b""), "serialized as 'pickle'"),
        (PackedArray("float32", NPY_SERIALIZATION, b"nonsense"), "no valid .npy file"),
        (PackedArray("float32", NPY_SERIALIZATION, b""), "no valid .npy file"),
        (PackedArray("float32", NPY_SERIALIZATION, packed(np.ones(3)).data[:-1]), "23 bytes"),
        (PackedArray("float32", NPY_SERIALIZATION, packed(np.ones(3)).data + b"x"), "25 bytes"),
        (
            PackedArray(
                "f", NPY_SERIALIZATION, packed(np.ones(3)).data.replace(b"(3,)", b"-3, ")
            ),
            "no valid .npy file",
        ),
        (
            PackedArray(
                "f", NPY_SERIALIZATION, packed(np.ones(3)).data.replace(b"(3,)", b"(((")
            ),
            "no valid .npy file",
        ),
    ],
)
def test_refuses_invalid_arrays(part: PackedArray, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        ArrayDecoder().decode_model({"w": part})


def test_refuses_other_tensors_and_shapes() -> None:
    decoder, one = ArrayDecoder(), packed(np.ones(2, np.float32))
    with pytest.raises(ValueError, match="extra 'v', missing 'w'"):
        decoder.decode_update({"v": one}, {"w": one})
    with pytest.raises(ValueError, match=r"\(2, 1\)"):
        decoder.decode_update({"w": packed(np.ones((2, 1), np.float32))}, {"w": one})
