"""Kernels are compiled only where Triton runs, and not again where one has failed."""

import sys
import warnings

import pytest
import torch

from overheard.learning.engines import triton_support
from overheard.learning.engines.triton_support import refuse_kernels, runs_triton

GPU, FIRST_GPU = torch.device("cuda"), torch.device("cuda:0")


def test_a_kernel_that_failed_on_a_gpu_is_refused_by_each_of_its_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(triton_support, "_compiles", lambda device: True)
    monkeypatch.setattr(triton_support, "_refused", set[str]())
    assert runs_triton(GPU)
    assert not runs_triton(torch.device("cpu"))
    with pytest.warns(RuntimeWarning, match="takes longer"):
        refuse_kernels(FIRST_GPU, "no kernel image")
    with warnings.catch_warnings(action="error"):
        refuse_kernels(GPU, "no kernel image")
    assert not runs_triton(GPU)
    assert not runs_triton(FIRST_GPU)


@pytest.mark.parametrize(
    ("found", "reason"), [(object(), "import of triton"), (None, "Triton is not installed")]
)
def test_a_triton_that_cannot_be_imported_is_not_used_and_the_user_is_told(
    found: object, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(triton_support, "_refused", set[str]())
    monkeypatch.setattr(triton_support, "find_spec", lambda name: found)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    monkeypatch.setitem(sys.modules, "triton", None)
    with pytest.warns(RuntimeWarning, match=reason):
        assert not triton_support._compiles.__wrapped__(GPU)
