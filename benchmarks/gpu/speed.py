"""Seconds of cohorts on the GPU, beside two rivals and the ceilings of the card."""

import time
from collections.abc import Callable
from unittest.mock import patch

import torch
from cohorts import COHORTS, COLOUR, GREY, Cohort, conv_net_operations
from rivals import plain_graph, plain_loop

from overheard.learning.memory_layout import MemoryOrder

Row = dict[str, float | str | None]

GOALS = {
    ("conv_net 1x28x28", "float32"): 2.2,
    ("conv_net 3x32x32", "float32"): 2.9,
    ("conv_net 1x28x28", "tf32"): 1.3,
    ("conv_net 3x32x32", "tf32"): 1.7,
    ("text_bag", "float32"): 0.2,
    ("lstm", "float32"): 0.3,
    ("transformer, LoRA", "float32"): 0.1,
}
"""Most seconds, on an H100 or H200."""

RATIO_GOALS = {("resnet18", "float32"): 3.0}
"""Least ratio to the plain loop."""

PRECISIONS = {
    "conv_net 1x28x28": ("float32", "tf32", "bf16"),
    "conv_net 3x32x32": ("float32", "tf32", "bf16"),
}
"""Of other cohorts only float32 is measured."""

IN_BOTH_ORDERS = ("resnet18", "batch norms")
"""Cohorts that train with channels last too, which the product does not do in float32."""

RIVAL_CLIENTS = 10
"""Clients that the rivals train; their seconds are scaled to the cohort."""


def seconds_of(work: Callable[[], object]) -> float:
    """Return the seconds that the work takes, the GPU's included."""
    torch.cuda.synchronize()
    began = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - began


def ceilings() -> dict[str, float]:
    """Return TFLOP/s of products of matrices by precision, TB/s of copies and us a launch."""
    square = [torch.randn(8192, 8192, device="cuda") for _ in range(2)]
    stack = (
        torch.randn(128, 6272, 1152, device="cuda"),
        torch.randn(128, 1152, 128, device="cuda"),
    )
    found = dict[str, float]()
    for precision in ("float32", "tf32", "bf16"):
        _lower_products(precision)
        for what, factors in (("square", square), ("stack", stack)):
            dtype = torch.bfloat16 if precision == "bf16" else torch.float32
            one, other = (factor.to(dtype) for factor in factors)
            one @ other
            spent = min(seconds_of(lambda a=one, b=other: a @ b) for _ in range(5))
            operations = 2 * one.shape[-2] * one.shape[-1] * other.shape[-1]
            operations *= len(one) if one.dim() == 3 else 1
            found[f"{precision} {what}, TFLOP/s"] = operations / spent / 1e12
    _lower_products("float32")
    large, copy = torch.randn(2, 2**28, device="cuda")
    copy.copy_(large)
    found["copy, TB/s"] = (
        2 * large.nbytes / min(seconds_of(lambda: copy.copy_(large)) for _ in range(5)) / 1e12
    )
    small = torch.zeros(8, device="cuda")
    small.add_(1)
    found["launch, us"] = seconds_of(lambda: [small.add_(1) for _ in range(5000)]) / 5000 * 1e6
    host = large[: 2**24].cpu()
    found["to the GPU, GB/s"] = host.nbytes / min(seconds_of(host.cuda) for _ in range(3)) / 1e9
    found["to the CPU, GB/s"] = (
        host.nbytes / min(seconds_of(large[: 2**24].cpu) for _ in range(3)) / 1e9
    )
    return found


def measure(name: str, precision: str, repeats: int = 2) -> Row:
    """Return the seconds of a cohort, after a first run, and those of its rivals."""
    cohort = COHORTS[name]()
    row: Row = {"clients": len(cohort.clients), "precision": precision}
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    row["first, s"] = seconds_of(lambda: cohort.train("cuda", precision=precision))
    row["s"] = min(
        seconds_of(lambda: cohort.train("cuda", precision=precision)) for _ in range(repeats)
    )
    row["peak, GiB"] = torch.cuda.max_memory_allocated() / 2**30
    if name in IN_BOTH_ORDERS:
        with patch.object(MemoryOrder, "on", lambda *_: MemoryOrder(are_channels_last=True)):
            cohort.train("cuda", precision=precision)
            row["channels last, s"] = seconds_of(
                lambda: cohort.train("cuda", precision=precision)
            )
    few = cohort.first(RIVAL_CLIENTS)
    scale = len(cohort.clients) / len(few.clients)
    for what, build in (("plain loop, s", plain_loop), ("plain graph, s", plain_graph)):
        _lower_products(precision)
        try:
            row[what] = _rival_seconds(build, few, is_low=precision == "bf16") * scale
        except RuntimeError as error:
            row[what], row[f"{what} failed"] = None, str(error).splitlines()[0][:160]
        _lower_products("float32")
    if name.startswith("conv_net"):
        task = GREY if "28" in name else COLOUR
        examples = cohort.recipe.epochs * sum(len(one.rows) for one in cohort.clients)
        row["TFLOP/s"] = examples * conv_net_operations(task) / float(row["s"] or 0) / 1e12
    row["goal, s"] = GOALS.get((name, precision))
    row["goal, times the plain loop"] = RATIO_GOALS.get((name, precision))
    return row


def is_missed(row: Row) -> bool:
    """Return whether a row misses its goal, or it cannot be told."""
    spent, plain = float(row["s"] or 0), row.get("plain loop, s")
    goal, ratio = row["goal, s"], row["goal, times the plain loop"]
    return (goal is not None and spent > float(goal)) or (
        ratio is not None and (plain is None or float(plain) / spent < float(ratio))
    )


def _rival_seconds(
    build: Callable[[Cohort], Callable[[], None]], few: Cohort, is_low: bool
) -> float:
    with torch.autocast("cuda", torch.bfloat16, enabled=is_low, cache_enabled=False):
        train = build(few)
        train()
        return min(seconds_of(train) for _ in range(2))


def _lower_products(precision: str) -> None:
    is_low = precision == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = is_low
    torch.backends.cudnn.allow_tf32 = is_low
