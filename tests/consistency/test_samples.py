from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.archive.tensor_files import to_safetensors
from overheard.archive.weights import StoredWeights, tensor_shapes
from overheard.consistency.samples import (
    BLOCK,
    MOST_IN_ALL,
    MOST_OF_A_TENSOR,
    Sample,
    plan_sample,
)
from overheard.core.errors import TranscriptError


@given(st.lists(st.integers(0, 300_000), min_size=1, max_size=8))
def test_samples_are_disjoint_parts_within_their_bounds(lengths: list[int]) -> None:
    plan = plan_sample({str(place): (n,) for place, n in enumerate(lengths)})
    for name, blocks in plan.blocks.items():
        ends = [0, *(stop for _, stop in blocks)]
        assert all(start >= end for (start, _), end in zip(blocks, ends, strict=False))
        assert 0 < blocks[-1][1] <= lengths[int(name)]
        assert plan.size(name) <= MOST_OF_A_TENSOR
    assert sum(map(plan.size, plan.blocks)) <= max(MOST_IN_ALL, BLOCK * len(lengths))
    assert set(plan.blocks) == {str(place) for place, n in enumerate(lengths) if n}


def test_a_stored_sample_is_that_of_memory(tmp_path: Path) -> None:
    tensors = {"a": torch.randn(300, 400), "b": torch.randn(7)}
    path = tmp_path / "x.safetensors"
    path.write_bytes(to_safetensors(tensors))
    plan = plan_sample(tensor_shapes(tensors))
    stored = plan.read(StoredWeights(path, tensor_shapes(tensors)))
    flat = stored.flat(("a", "b"))
    assert torch.equal(flat, plan.read(tensors).flat(("a", "b")))
    assert len(flat) == MOST_OF_A_TENSOR // 2 + 7
    # The first and the last number of a tensor are in the sample.
    assert flat[0] == tensors["a"][0, 0]
    assert flat[-8] == tensors["a"][-1, -1]


def test_running_statistics_are_left_out_unless_there_is_nothing_else() -> None:
    assert list(plan_sample({"w": (3,), "n.running_mean": (3,)}).blocks) == ["w"]
    assert list(plan_sample({"n.running_mean": (3,)}).blocks) == ["n.running_mean"]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_the_precision_is_that_of_the_digits(dtype: torch.dtype) -> None:
    numbers = torch.randn(500, generator=torch.Generator().manual_seed(0)).to(dtype)
    expected = max(torch.finfo(dtype).eps, 2**-21)
    assert Sample({"w": numbers}).precision == expected
    # A model of 16 bits may be stored in 32.
    assert Sample({"w": numbers.float()}).precision == expected


def test_round_numbers_tell_no_precision() -> None:
    assert Sample({"w": torch.arange(16.0)}).precision == 2**-21


def test_a_damaged_part_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(to_safetensors({"a": torch.ones(4)}))
    content = bytearray(path.read_bytes())
    content[-4:] = torch.tensor([torch.nan]).numpy().tobytes()
    path.write_bytes(bytes(content))
    with pytest.raises(TranscriptError, match="NaN"):
        plan_sample({"a": (4,)}).read(StoredWeights(path, {"a": (4,)}))


def test_refuses_a_tensor_that_no_file_can_hold() -> None:
    with pytest.raises(TranscriptError, match="that no file can hold"):
        plan_sample({"a": (2**40, 2**40)})
