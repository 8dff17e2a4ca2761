"""Torch's settings of precision hold within a block, and are left as they were found."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from threading import Event, Thread

import pytest
import torch

from overheard.core.recipe import Precision
from overheard.learning import precision
from overheard.learning.precision import computing

NEW = hasattr(torch.backends.cuda.matmul, "fp32_precision")
needs_new = pytest.mark.skipif(not NEW, reason="torch 2.9 brought these settings")


def of_gpu() -> Sequence[object]:
    """What convolutions, recurrent layers and matrix products on a GPU do."""
    if NEW:
        cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
        return [one.fp32_precision == "tf32" for one in (cudnn.conv, cudnn.rnn, matmul)]
    allowed = torch.backends.cudnn.allow_tf32
    return [allowed, allowed, torch.backends.cuda.matmul.allow_tf32]


@pytest.fixture(autouse=True)
def settings_stay() -> Iterator[None]:
    """No test leaves a setting changed."""
    before = of_gpu()
    yield
    assert of_gpu() == before


def test_no_product_on_a_gpu_is_rounded_unless_asked() -> None:
    assert of_gpu()[:2] == [True, True]  # torch's own default, or this test shows nothing
    with computing("float32"):
        assert of_gpu() == [False, False, False]
    for rounded in ("tf32", "bf16"):
        with computing(rounded):
            assert of_gpu() == [True, True, True]


def test_convolutions_have_the_same_bits_in_each_run() -> None:
    cudnn = torch.backends.cudnn
    cudnn.benchmark = True
    try:
        with computing("tf32"):
            assert (cudnn.deterministic, cudnn.benchmark) == (True, False)
        assert (cudnn.deterministic, cudnn.benchmark) == (False, True)
    finally:
        cudnn.benchmark = False


def test_a_block_within_another_ends_with_the_outer_precision() -> None:
    with computing("tf32"):
        with computing("float32"):
            assert not any(of_gpu())
        assert all(of_gpu())
        with pytest.raises(ZeroDivisionError), computing("float32"):
            1 / 0  # noqa: B018
        assert all(of_gpu())


def test_blocks_of_threads_may_end_in_any_order() -> None:
    began, may_end = Event(), Event()

    def compute() -> None:
        with computing("tf32"):
            began.set()
            may_end.wait(10)

    thread = Thread(target=compute)
    with ExitStack() as stack:
        stack.enter_context(computing("float32"))
        thread.start()
        assert began.wait(10)
    assert all(of_gpu())  # the thread computes still
    may_end.set()
    thread.join()


@needs_new
def test_a_general_setting_of_the_process_stays_in_force() -> None:
    """A setting that a product took from a more general one is not pinned to it."""
    torch.backends.fp32_precision = "tf32"
    try:
        with computing("float32"):
            assert not any(of_gpu())
        assert torch.backends.cuda.matmul.fp32_precision == "tf32"
        torch.backends.fp32_precision = "ieee"
        assert torch.backends.cuda.matmul.fp32_precision == "ieee"
    finally:
        torch.backends.fp32_precision = "none"


@needs_new
@pytest.mark.parametrize("rounded", ["float32", "tf32"])
def test_old_and_new_settings_agree_within_a_block(rounded: Precision) -> None:
    """Torch fails where they differ, as when a network of a user switches cuDNN off."""
    with computing(rounded):
        with torch.backends.cudnn.flags(enabled=False):
            pass
        assert torch.backends.cuda.matmul.allow_tf32 == (rounded == "tf32")


@needs_new
def test_settings_that_torch_refuses_to_mix_are_found_again() -> None:
    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
    cudnn.conv.fp32_precision = "ieee"
    torch.set_float32_matmul_precision("medium")
    matmul.fp32_precision = "none"
    try:
        with computing("tf32"):
            assert all(of_gpu())
        assert of_gpu() == [False, True, False]
        with pytest.raises(RuntimeError, match="different"):
            cudnn.allow_tf32  # noqa: B018
        matmul.fp32_precision = "tf32"
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        cudnn.allow_tf32 = True
        torch.set_float32_matmul_precision("highest")


@needs_new
def test_settings_of_older_versions_of_torch_are_changed_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(precision, "_ARE_BY_PRODUCT", False)
    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
    before = cudnn.conv.fp32_precision, cudnn.rnn.fp32_precision, matmul.fp32_precision
    with computing("float32"):
        assert (cudnn.allow_tf32, matmul.allow_tf32) == (False, False)
    with computing("tf32"):
        assert (cudnn.allow_tf32, matmul.allow_tf32) == (True, True)
    assert (cudnn.allow_tf32, matmul.allow_tf32) == (True, False)
    cudnn.conv.fp32_precision, cudnn.rnn.fp32_precision, matmul.fp32_precision = before


@pytest.mark.skipif(not torch.cuda.is_available(), reason="autocast changes a GPU alone")
def test_bfloat16_rounds_layers_but_no_numbers_of_double_precision() -> None:
    layer = torch.nn.Linear(3, 2).cuda()
    numbers = torch.ones(4, 3, device="cuda")
    with computing("bf16"):
        assert layer(numbers).dtype == torch.bfloat16
        assert layer.double()(numbers.double()).dtype == torch.float64


def test_a_cpu_rounds_nothing() -> None:
    numbers = torch.randn(64, 64, generator=torch.Generator().manual_seed(0))
    plain = numbers @ numbers
    with computing("bf16"):
        assert torch.equal(numbers @ numbers, plain)
    torch.set_float32_matmul_precision("medium")
    try:
        with computing("bf16"):
            assert torch.equal(numbers @ numbers, plain)
    finally:
        torch.set_float32_matmul_precision("highest")
