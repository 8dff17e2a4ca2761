"""Write everything that a plan can name, without running it.

python parts.py OUT    writes parts.json, models.json, papers.json, schemas, lists and help
"""

import hashlib
import io
import json
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import get_args

import torch
from rich.console import Console
from torch import Tensor, nn
from torch.func import functional_call
from typer.main import get_command
from typer.testing import CliRunner

from _reference.storage import store_json
from overheard.cli.listing import list_parts
from overheard.cli.main import app
from overheard.cli.options import ListedKind
from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.messages import Weights
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.gate.policy import Policy
from overheard.learning.initialization import initial_weights
from overheard.learning.models.lstm import Lstm
from overheard.learning.models.mlp import Mlp
from overheard.learning.train import Engine, train_cohort
from overheard.learning.training_job import ClientTask
from overheard.plans.plan import Plan
from overheard.plans.registries import MODELS, REGISTRIES
from overheard_studies.registry import discover_papers

TASKS = (
    Task((1, 12, 12), tuple("abcd")),
    Task((1, 28, 28), tuple("abcd")),
    Task((3, 32, 32), tuple("abcd")),
    Task((14,), tuple("ab")),
    Task((6,), tuple("abc"), vocabulary=20),
)
"""Each model is built for the first task that it supports."""

WIDE = 100
"""Columns of the terminal."""

MODULE = re.compile(r"overheard__[a-z_]+?__(?=[A-Z])")
"""Module names in schema names, which differ after a move."""


def models() -> dict[str, object]:
    """Return weights, outputs and a training of models without required settings."""
    results: dict[str, object] = {}
    for name, model in MODELS.plugins().items():
        for task in TASKS:
            try:
                built = model().build(task)
            except (PlanError, TypeError, ValueError):
                continue
            results[name] = describe_model(partial(model().build, task), built, task)
            break
    return results


def describe_model(build: Callable[[], nn.Module], built: nn.Module, task: Task) -> object:
    """Return digests of large weights, outputs and a training."""
    start, examples = initial_weights(build, Seed(0)), draw_examples(task)
    outputs = functional_call(built.eval(), dict(start), (examples.inputs,)).detach()
    return {
        "task": repr(task),
        "parameters": sum(weight.numel() for weight in start.values()),
        "start": digest(start),
        "answers": outputs.tolist(),
        "trained": trained(build, start, examples, "sequential"),
    }


def engines() -> dict[str, object]:
    """Return a training of a feed-forward and a text network by every engine."""
    results: dict[str, object] = {}
    for model, task in ((Mlp(), TASKS[3]), (Lstm(4, 4), TASKS[4])):
        build = partial(model.build, task)
        for engine in get_args(Engine):
            try:
                digests = trained(
                    build, initial_weights(build, Seed(0)), draw_examples(task), engine
                )
            except PlanError as error:
                digests = str(error)
            results[f"{model.name}, {engine}"] = digests
    return results


def trained(
    build: Callable[[], nn.Module], start: Weights, pool: Examples, engine: Engine
) -> str:
    """Return a digest of the updates of two clients."""
    members = [ClientTask("one", torch.arange(0, 4)), ClientTask("two", torch.arange(4, 8))]
    recipe = Recipe(rate=0.1, epochs=1, batch=2, momentum=0.5)
    done = train_cohort(
        build, start, pool, members, recipe, seed=Seed(1), round=0, engine=engine, workers=2
    )
    return " ".join(digest(one.delta) for one in done)


def draw_examples(task: Task) -> Examples:
    """Draw eight examples."""
    generator, labels = Seed(2).generator(), torch.arange(8) % task.classes
    if task.vocabulary is None:
        return Examples(torch.randn(8, *task.shape, generator=generator), labels)
    return Examples(
        torch.randint(task.vocabulary, (8, *task.shape), generator=generator), labels
    )


def digest(weights: Weights) -> str:
    """Return a digest of names, shapes and bits."""
    hasher = hashlib.sha256()
    for name, weight in weights.items():
        hasher.update(f"{name} {tuple(weight.shape)} {weight.dtype}".encode())
        hasher.update(bits(weight))
    return hasher.hexdigest()


def bits(weight: Tensor) -> bytes:
    """Return the bytes in memory."""
    return weight.detach().contiguous().numpy().tobytes()


def experiments() -> dict[str, object]:
    """Return title, differences and plans of every experiment, quick and full."""
    return {
        f"{name}/{key}": {
            "title": experiment.title,
            "differences": experiment.differences,
            **{
                size: {
                    called: plan.model_dump(mode="json", exclude_none=True)
                    for called, plan in experiment.plans(quick=quick).items()
                }
                for size, quick in (("quick", True), ("full", False))
            },
        }
        for name, paper in discover_papers().items()
        for key, experiment in paper.experiments().items()
    }


def listed(kind: str) -> str:
    """Return the output of `overheard list`."""
    console = Console(file=io.StringIO(), width=WIDE)
    list_parts(kind, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def helped(*command: str) -> str:
    """Return the output of `overheard COMMAND --help`."""
    return CliRunner().invoke(app, [*command, "--help"]).output


def main() -> None:
    """Write all files."""
    out = Path(sys.argv[1])
    torch.set_num_threads(1)
    kinds = {kind.name: list(kind.plugins()) for kind in REGISTRIES}
    store_json(kinds, out / "parts.json")
    store_json(models(), out / "models.json")
    store_json(engines(), out / "engines.json")
    store_json(experiments(), out / "papers.json")
    for name, table in (("plan", Plan), ("policy", Policy)):
        text = MODULE.sub("", json.dumps(table.model_json_schema()))
        store_json(json.loads(text), out / "schemas" / f"{name}.json")
    texts = {f"list {kind.value}": listed(kind.value) for kind in ListedKind}
    commands = getattr(get_command(app), "commands")  # noqa: B009 - of a group, as this one is
    texts |= {f"{name} --help": helped(name) for name in sorted(commands)} | {
        "--help": helped()
    }
    (out / "printed").mkdir(parents=True)
    for name, text in texts.items():
        (out / "printed" / f"{name}.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
