"""Everything that a plan can name, as far as it shows without a run.

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

from _reference.kept import keep_json
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
from overheard.learning.cohort import Member
from overheard.learning.initial import initial_weights
from overheard.learning.models.lstm import Lstm
from overheard.learning.models.mlp import Mlp
from overheard.learning.train import Engine, train_cohort
from overheard.papers.find import papers
from overheard.plans.kinds import KINDS, MODELS
from overheard.plans.plan import Plan

TASKS = (
    Task((1, 12, 12), tuple("abcd")),
    Task((1, 28, 28), tuple("abcd")),
    Task((3, 32, 32), tuple("abcd")),
    Task((14,), tuple("ab")),
    Task((6,), tuple("abc"), vocabulary=20),
)
"""A model is built for the first of them that it takes."""

WIDE = 100
"""Columns of a terminal."""

MODULE = re.compile(r"overheard__[a-z_]+?__(?=[A-Z])")
"""Which module stands in the name of a schema where two have one name: modules move."""


def models() -> dict[str, object]:
    """First weights, answers and a training of every model that asks for no setting."""
    told: dict[str, object] = {}
    for name, model in MODELS.parts().items():
        for task in TASKS:
            try:
                built = model().build(task)
            except (PlanError, TypeError, ValueError):
                continue
            told[name] = model_told(partial(model().build, task), built, task)
            break
    return told


def model_told(build: Callable[[], nn.Module], built: nn.Module, task: Task) -> object:
    """Digests, as the weights of some are many."""
    start, examples = initial_weights(build, Seed(0)), drawn(task)
    answers = functional_call(built.eval(), dict(start), (examples.inputs,)).detach()
    return {
        "task": repr(task),
        "parameters": sum(weight.numel() for weight in start.values()),
        "start": digest(start),
        "answers": answers.tolist(),
        "trained": trained(build, start, examples, "sequential"),
    }


def engines() -> dict[str, object]:
    """A training by every engine of one network of layers and one that reads texts."""
    told: dict[str, object] = {}
    for model, task in ((Mlp(), TASKS[3]), (Lstm(4, 4), TASKS[4])):
        build = partial(model.build, task)
        for engine in get_args(Engine):
            try:
                one = trained(build, initial_weights(build, Seed(0)), drawn(task), engine)
            except PlanError as error:
                one = str(error)
            told[f"{model.name}, {engine}"] = one
    return told


def trained(
    build: Callable[[], nn.Module], start: Weights, pool: Examples, engine: Engine
) -> str:
    """A digest of what two clients send."""
    members = [Member("one", torch.arange(0, 4)), Member("two", torch.arange(4, 8))]
    recipe = Recipe(rate=0.1, epochs=1, batch=2, momentum=0.5)
    done = train_cohort(
        build, start, pool, members, recipe, seed=Seed(1), round=0, engine=engine, workers=2
    )
    return " ".join(digest(one.delta) for one in done)


def drawn(task: Task) -> Examples:
    """Eight examples."""
    draw, labels = Seed(2).generator(), torch.arange(8) % task.classes
    if task.vocabulary is None:
        return Examples(torch.randn(8, *task.shape, generator=draw), labels)
    return Examples(torch.randint(task.vocabulary, (8, *task.shape), generator=draw), labels)


def digest(weights: Weights) -> str:
    """Of names, shapes and bits."""
    whole = hashlib.sha256()
    for name, weight in weights.items():
        whole.update(f"{name} {tuple(weight.shape)} {weight.dtype}".encode())
        whole.update(bits(weight))
    return whole.hexdigest()


def bits(weight: Tensor) -> bytes:
    """As they lie in memory."""
    return weight.detach().contiguous().numpy().tobytes()


def experiments() -> dict[str, object]:
    """Title, differences and plans of every experiment of every paper, small and large."""
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
        for name, paper in papers().items()
        for key, experiment in paper.experiments().items()
    }


def listed(kind: str) -> str:
    """What `overheard list` prints."""
    console = Console(file=io.StringIO(), width=WIDE)
    list_parts(kind, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def helped(*command: str) -> str:
    """What `overheard COMMAND --help` prints."""
    return CliRunner().invoke(app, [*command, "--help"]).output


def main() -> None:
    """Write all of it."""
    out = Path(sys.argv[1])
    torch.set_num_threads(1)
    kinds = {kind.name: list(kind.parts()) for kind in KINDS}
    keep_json(kinds, out / "parts.json")
    keep_json(models(), out / "models.json")
    keep_json(engines(), out / "engines.json")
    keep_json(experiments(), out / "papers.json")
    for name, table in (("plan", Plan), ("policy", Policy)):
        text = MODULE.sub("", json.dumps(table.model_json_schema()))
        keep_json(json.loads(text), out / "schemas" / f"{name}.json")
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
