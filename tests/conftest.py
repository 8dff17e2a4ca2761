"""Fixtures: hand-made audits for tests of reports, and partitions that are drawn anew once."""

import gc
import os
from collections.abc import Generator, Iterator
from typing import Any

import pytest
import torch

# Without a GPU kernels run in Triton's interpreter. Triton reads this when it is imported, as
# parts of torch do.
os.environ["TRITON_INTERPRET"] = "0" if torch.cuda.is_available() else "1"

from overheard.auditing import inputs
from overheard.core.custom_code.reference import references_of
from overheard.data.dataset import Dataset
from overheard.data.dataset_digest import dataset_digest
from overheard.data.partition.first_round import SplitSettings
from tests.runs.audits import rich, small

__all__ = ["redrawn_once", "rich", "small"]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no cycles among the million objects of collected tests: they all stay.

    It would take a quarter of the time of collecting, and again while tests run.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session", autouse=True)
def redrawn_once() -> Iterator[None]:
    """Let audits of the same examples in many tests draw their partitions anew once.

    It takes a fifth of the time of a small audit. Tests of the draws call the function itself.
    """
    drawn, draw = dict[str, Any](), inputs.redraw_label_counts

    def once(dataset: Dataset, settings: SplitSettings, *given: Any, **named: Any) -> Any:
        is_built_in = type(settings.split).__module__.startswith("overheard.")
        if not is_built_in or any(references_of(settings.split)):
            return draw(dataset, settings, *given, **named)
        key = f"{dataset_digest(dataset)} {settings} {given} {sorted(named.items())}"
        if key not in drawn:
            drawn[key] = draw(dataset, settings, *given, **named)
        return drawn[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inputs, "redraw_label_counts", once)
        yield
