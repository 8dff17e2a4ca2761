import pytest
import torch
from safetensors.torch import save

from overheard.archive.safetensors_buffers import to_safetensors_buffers


def test_buffers_equal_the_bytes_of_safetensors_for_all_types_and_names() -> None:
    weights = {
        "z": torch.arange(6.0).reshape(2, 3),
        "a": torch.tensor(1.5),
        "größe\n\"'\\\x01": torch.ones(3, dtype=torch.float64),
        "half": torch.ones(3, dtype=torch.float16),
        "brain": torch.full((1, 2), 2.0, dtype=torch.bfloat16),
        "empty": torch.zeros(0, 4),
    }
    assert b"".join(to_safetensors_buffers(weights)) == save(weights)
    assert b"".join(to_safetensors_buffers({})) == save({})


def test_shared_and_transposed_tensors_are_written_correctly() -> None:
    whole = torch.arange(6.0).reshape(2, 3)
    shared = {"row": whole[1], "across": whole.T, "again": whole.requires_grad_()}
    apart = {name: one.detach().clone().contiguous() for name, one in shared.items()}
    assert b"".join(to_safetensors_buffers(shared)) == save(apart)


def test_refuses_invalid_weights() -> None:
    with pytest.raises(ValueError, match="'w' holds NaN"):
        to_safetensors_buffers({"w": torch.tensor([1.0, float("nan")])})
    with pytest.raises(ValueError, match="no floating-point"):
        to_safetensors_buffers({"w": torch.tensor([1])})
