"""Every algorithm in the folder passes the checks of `overheard.testing`, and resumes."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import nn

from overheard.core.algorithm.algorithm import Algorithm
from overheard.core.errors import OutputError
from overheard.core.examples import Examples
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.federation.federation import Federation
from overheard.federation.run import run
from overheard.learning.models.mlp import Mlp
from overheard.plans.registries import ALGORITHMS
from overheard.testing.algorithm import ALGORITHM_CHECKS

TASK = Task((4,), ("a", "b", "c"))

MLP = Mlp(hidden=(5,))


def normed() -> nn.Module:
    """A network with one batch norm, for FedBN."""
    return nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 3))


@pytest.mark.parametrize("name", ALGORITHMS.plugins())
@pytest.mark.parametrize("check", ALGORITHM_CHECKS)
def test_every_algorithm(name: str, check: Callable[[Algorithm], None]) -> None:
    algorithm = ALGORITHMS.plugins()[name]()
    assert algorithm.name == name
    check(algorithm)


def federation(algorithm: Algorithm) -> Federation:
    """Six clients of ten examples; four rounds in which half of them train."""
    draw = torch.Generator().manual_seed(0)
    pool = Examples(torch.randn(60, 4, generator=draw), torch.arange(60) % 3)
    return Federation(
        build_model=normed if algorithm.name == "fed_bn" else partial(MLP.build, TASK),
        model="mlp",
        task=TASK,
        recipe=Recipe(rate=0.1, epochs=2, batch=4),
        pool=pool,
        rows=[list(torch.arange(60).split(10))] * 4,
        test=pool,
        rounds=4,
        seed=Seed(5),
        participation=1.0 if algorithm.schedule(1, 1, Seed(0)) else 0.5,
        engine="sequential",
        algorithm=algorithm,
        epochs_range=(1, 3),
    )


def files(folder: Path) -> dict[str, bytes]:
    """The content of every file by its path."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


class _StopError(Exception):
    """Stops a run after a round."""


@pytest.mark.parametrize("name", ALGORITHMS.plugins())
def test_an_interrupted_run_resumes_to_the_same_bytes(name: str, tmp_path: Path) -> None:
    planned = federation(ALGORITHMS.plugins()[name]())
    run(planned, tmp_path / "whole")

    def stop(number: int) -> None:
        if number in (0, 2):
            raise _StopError

    for _ in range(2):
        with pytest.raises(_StopError):
            run(planned, tmp_path / "resumed", stop)
    run(planned, tmp_path / "resumed")
    assert files(tmp_path / "resumed") == files(tmp_path / "whole")


@pytest.mark.slow
def test_algorithms_give_different_models(tmp_path: Path) -> None:
    """Each algorithm does something: no two of them end with the same weights."""
    ends = dict[str, torch.Tensor]()
    for name, kind in ALGORITHMS.plugins().items():
        transcript, _ = run(federation(kind()), tmp_path / name)
        last = transcript.messages[-1].body
        ends[name] = next(iter(last.weights.values()))  # type: ignore[union-attr]
    names = list(ends)
    same = [
        (one, other)
        for place, one in enumerate(names)
        for other in names[place + 1 :]
        if torch.equal(ends[one], ends[other])
    ]
    assert same == []


def test_a_run_of_another_algorithm_is_not_continued(tmp_path: Path) -> None:
    plugins = ALGORITHMS.plugins()
    run(federation(plugins["fed_avg"]()), tmp_path)
    with pytest.raises(OutputError, match="protocol"):
        run(federation(plugins["fed_adam"]()), tmp_path)
    with pytest.raises(OutputError, match="protocol"):
        run(replace(federation(plugins["fed_avg"]()), epochs_range=None), tmp_path)
