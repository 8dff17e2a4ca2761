import gc
from pathlib import Path

import pytest
import torch

from overheard.learning.workers.job import TensorBundle
from overheard.learning.workers.processes import TensorFiles


def test_mapped_tensors_equal_the_original_ones() -> None:
    tensors = {
        "table": torch.arange(6.0).view(2, 3),
        "turned": torch.arange(6).view(2, 3).T,
        "one": torch.tensor(4.5, dtype=torch.float64),
        "none": torch.zeros(0, 3),
    }
    files, bundle = TensorFiles(), TensorBundle(tensors)
    mapped = files.store(bundle)
    assert all(mapped[name].map_tensor().equal(tensor) for name, tensor in tensors.items())
    files.close()


@pytest.mark.slow
def test_a_bundle_is_written_once_and_removed_with_its_last_reference() -> None:
    files = TensorFiles()
    stored, dropped = (TensorBundle({name: torch.ones(2)}) for name in ("kept", "dropped"))
    both = {n: t for one in (stored, dropped) for n, t in files.store(one).items()}
    again = files.store(stored)
    assert again["kept"] is both["kept"]
    del dropped
    gc.collect()
    assert Path(both["kept"].path).exists()
    assert not Path(both["dropped"].path).exists()
    files.close()
    assert not Path(both["kept"].path).exists()
