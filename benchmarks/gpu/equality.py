"""How far updates computed on a GPU are from those of the CPU."""

import traceback
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor, nn

from overheard.core.defense import BuildModel
from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.messages import Update, Weights
from overheard.core.parties import client
from overheard.core.recipe import PrivateSteps, Recipe
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.learning.initialization import initial_weights
from overheard.learning.model import Model
from overheard.learning.models.conv_net import ConvNet
from overheard.learning.models.mlp import Mlp
from overheard.learning.models.transformer import Transformer
from overheard.learning.train import Engine, train_cohort
from overheard.learning.training_job import ClientTask
from overheard.plans.registries import DEFENSES, MODELS
from overheard.testing.defense import make_client_examples, make_context, make_delta

DEVICE = "cuda"
SEED = Seed(7)
THREE = ("a", "b", "c")
TABLE, GREY, COLOUR = Task((14,), THREE), Task((1, 28, 28), THREE), Task((3, 32, 32), THREE)
TEXTS = Task((7,), THREE, vocabulary=30)
TWO_CLASSES = Task((14,), ("a", "b"))
LIMITS = {"float32": 1e-4, "float64": 1e-9}
"""The most that an update may differ, relative to its size; others may differ as they do."""

OWN_ERRORS = 3
"""How many times the CPU's own error in float32 an update may differ, if that is more: once for
the CPU, twice for the GPU. The error is the difference from float64, which is large where a
network amplifies rounding. DP-SGD has none, as its noise differs by precision."""

COLUMNS = ("float64", "float32", "tf32", "bf16")
ENGINES: tuple[Engine, ...] = ("sequential", "auto")
"""Without vmap one client after the other, and as the product chooses."""

OWN_ERROR = "float32 on the CPU"
"""The column of the CPU's own error, beside float64."""

AGAIN = "two runs"
BATCH = 8
STEPS = 3
SMALLER: dict[str, Model] = {
    "transformer": Transformer(width=16, depth=2, heads=2),
    "conv_net": ConvNet(width=16),
}
MORE: dict[str, Model] = {
    "transformer with adapters": Transformer(width=16, depth=2, heads=2, rank=2),
    "conv_net of width 128": ConvNet(),
}
ONE_STEP = ("mobilenet", "resnet18", "vgg16", "alexnet", "tiny_resnet")
"""Deep networks, and those with a batch norm, which amplify the rounding of earlier steps."""

FEW_EXAMPLES = {"vgg16": 2, "resnet18": 4, "alexnet": 4}
"""Examples of a client, of those that take long on the CPU."""

LAST = ("resnet18", "vgg16")


@dataclass(frozen=True, slots=True)
class Case:
    """Two clients that train one network.

    Args:
        build: builds the network.
        pool: the examples of both.
        recipe: how they train.
        examples: the number of examples of each, one epoch of batches of `BATCH`.
        engines: those to compare with the CPU.

    """

    build: BuildModel
    pool: Examples
    recipe: Recipe
    examples: int
    engines: tuple[Engine, ...] = ENGINES

    def train(self, device: str, engine: Engine, column: str) -> list[Weights]:
        """Return the update of each client."""
        start = initial_weights(self.build, SEED)
        pool, recipe = self.pool, self.recipe
        if column == "float64":
            start = {name: one.double() for name, one in start.items()}
            inputs = pool.inputs
            pool = Examples(
                inputs.double() if inputs.is_floating_point() else inputs, pool.labels
            )
        elif column != "float32":
            recipe = replace(recipe, precision=column)
        clients = [
            ClientTask(f"client/{n}", torch.arange(self.examples) + n * self.examples)
            for n in range(2)
        ]
        results = train_cohort(
            self.build,
            start,
            pool,
            clients,
            recipe,
            seed=SEED,
            round=0,
            engine=engine,
            workers=1,
            device=device,
        )
        return [one.delta for one in results]


def compare_all(device: str = DEVICE) -> tuple[dict[str, object], list[str]]:
    """Return the table of differences, and what exceeds its limit or failed."""
    rows: dict[str, dict[str, object]] = {}
    missed = list[str]()
    for what, case in cases().items():
        for engine, row in _compare(case, device).items():
            rows[f"{what}, {engine}"] = row
    for what, compare in {"defenses": _defenses, "noise of DP-SGD": _private_noise}.items():
        try:
            rows[what] = compare(device)
        except Exception:
            rows[what] = {"float32": traceback.format_exc()[-600:]}
    for what, row in rows.items():
        for column, found in row.items():
            if isinstance(found, str) and found not in ("refused", "equal"):
                missed.append(f"{what}, {column}: {found.strip().splitlines()[-1]}")
            elif isinstance(found, float) and not found <= _limit(row, column):
                missed.append(f"{what}, {column}: {found:.1e}")
    return {"columns": [*COLUMNS, OWN_ERROR, AGAIN], "rows": rows}, missed


def _limit(row: dict[str, object], column: str) -> float:
    own = row.get(OWN_ERROR, 0.0)
    assert isinstance(own, float)
    limit = LIMITS.get(column, float("inf"))
    return max(limit, OWN_ERRORS * own) if column == "float32" else limit


def cases() -> dict[str, Case]:
    """Return what is trained, by its name."""
    found = dict[str, Case]()
    names = [one for one in MODELS.plugins() if one not in ("own", "unknown", *LAST)]
    models = {one: SMALLER.get(one) or MODELS.plugins()[one]() for one in names} | MORE
    models |= {one: MODELS.plugins()[one]() for one in LAST}
    for name, model in models.items():
        build, task = _first_task(model)
        examples = FEW_EXAMPLES.get(name) or BATCH * (1 if name in ONE_STEP else STEPS)
        recipe = Recipe(rate=0.05, epochs=1, batch=BATCH)
        found[name] = Case(build, _pool(task, 2 * examples), recipe, examples)
    private = PrivateSteps(clip=1.0, noise_multiplier=1.0, batches=3, sampling="poisson")
    for name, build, task in (
        ("mlp, DP-SGD", partial(Mlp(hidden=(16,)).build, TABLE), TABLE),
        ("conv_net, DP-SGD", partial(ConvNet(width=8).build, GREY), GREY),
    ):
        recipe = Recipe(rate=0.05, epochs=1, batch=BATCH, private_steps=private)
        found[name] = Case(build, _pool(task, 48), recipe, 24)
    for name, build, task, engines in (
        ("mlp, dropout", _dropping_mlp, TABLE, ENGINES),
        ("convolutions, dropout", _dropping_maps, GREY, ("auto",)),
        ("LSTM, dropout within", _DroppingReader, TEXTS, ("auto",)),
        ("attention, dropout within", _DroppingAttention, TABLE, ("auto",)),
        ("dropout in a function", _HiddenDropout, TABLE, ("auto",)),
    ):
        recipe = Recipe(rate=0.05, epochs=1, batch=BATCH)
        found[name] = Case(build, _pool(task, 48), recipe, 24, engines)
    for optimizer in ("adam", "adamw", "adadelta"):
        recipe = Recipe(rate=0.01, epochs=1, batch=BATCH, optimizer=optimizer)
        build = partial(Mlp(hidden=(16,)).build, TABLE)
        found[f"mlp, {optimizer}"] = Case(build, _pool(TABLE, 48), recipe, 24)
    return found


def relative_difference(one: Weights, other: Weights) -> float:
    """Return the L2 norm of the difference of two updates, over that of the first."""
    squares = [
        (
            float((one[name].double() - other[name].double()).square().sum()),
            float(one[name].double().square().sum()),
        )
        for name in one
    ]
    apart, size = (sum(parts) for parts in zip(*squares, strict=True))
    return float((apart / size) ** 0.5) if size else float(apart > 0)


def _compare(case: Case, device: str) -> dict[str, dict[str, object]]:
    """Return the differences of a case by engine and column."""
    rows: dict[str, dict[str, object]] = {engine: {} for engine in case.engines}
    here = dict[str, list[Weights]]()
    for column in COLUMNS:
        dtype = column if column == "float64" else "float32"
        try:
            if dtype not in here:
                here[dtype] = case.train("cpu", "sequential", dtype)
        except Exception:
            for row in rows.values():
                row[column] = traceback.format_exc()[-600:]
            continue
        for engine, row in rows.items():
            row[column] = _difference(case, device, engine, column, here[dtype])
        has_own_error = "float64" in here and case.recipe.private_steps is None
        if column == "float32" and has_own_error:
            own = max(map(relative_difference, here["float64"], here["float32"]))
            for row in rows.values():
                row[OWN_ERROR] = own
    if isinstance(rows["auto"]["float32"], float):
        rows["auto"][AGAIN] = _repeated(case, device, "auto")
    return rows


def _difference(
    case: Case, device: str, engine: Engine, column: str, here: list[Weights]
) -> object:
    try:
        there = case.train(device, engine, column)
    except PlanError:
        return "refused"
    except Exception:
        return traceback.format_exc()[-600:]
    return max(map(relative_difference, here, there))


def _repeated(case: Case, device: str, engine: Engine) -> object:
    """Return "equal" if two runs on the device are, to the last bit."""
    one, other = (case.train(device, engine, "float32") for _ in range(2))
    are_equal = all(
        torch.equal(first[name], second[name])
        for first, second in zip(one, other, strict=True)
        for name in first
    )
    return "equal" if are_equal else "two runs differ"


def _defenses(device: str) -> dict[str, object]:
    """Return the largest difference of what any defense makes of data and updates."""
    largest = 0.0
    for name in DEFENSES.plugins():
        defense = DEFENSES.plugins()[name]()

        def change(place: str, defense: object = defense) -> list[Tensor]:
            data = defense.on_data(make_client_examples().to(place), make_context(0))
            delta = {part: one.to(place) for part, one in make_delta().items()}
            context = replace(make_context(0), party=client(1))
            update = defense.on_update(Update(delta), context)
            return [one.cpu().double() for one in (*data.tensors(), *update.delta.values())]

        for here, there in zip(change("cpu"), change(device), strict=True):
            apart = float((here - there).norm() / here.norm().clamp(min=1e-12))
            largest = max(largest, apart)
    return {"float32": largest}


def _private_noise(device: str) -> dict[str, object]:
    """Return the difference of the noise of DP-SGD alone."""
    private = PrivateSteps(clip=1e-3, noise_multiplier=1000, batches=1, sampling="shuffled")
    recipe = Recipe(rate=0.05, epochs=1, batch=BATCH, private_steps=private)
    case = Case(partial(Mlp(hidden=(16,)).build, TABLE), _pool(TABLE, 16), recipe, 8)
    here = case.train("cpu", "sequential", "float32")
    there = case.train(device, "auto", "float32")
    return {"float32": max(map(relative_difference, here, there))}


def _first_task(model: Model) -> tuple[BuildModel, Task]:
    """Return the first task that a model can be built for, and its builder."""
    for task in (TABLE, GREY, COLOUR, TEXTS, TWO_CLASSES):
        build = partial(model.build, task)
        try:
            build()
        except PlanError:
            continue
        return build, task
    raise AssertionError(f"no task for {model}")


def _pool(task: Task, examples: int) -> Examples:
    """Return random examples."""
    generator = SEED.child("pool").generator()
    shape = (examples, *task.shape)
    inputs = (
        torch.randn(shape, generator=generator)
        if task.vocabulary is None
        else torch.randint(task.vocabulary, shape, generator=generator)
    )
    return Examples(inputs, torch.randint(task.classes, (examples,), generator=generator))


def _dropping_mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(14, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 3))


def _dropping_maps() -> nn.Module:
    """The norms of a GPU have the channels of maps first, those of the trainer last."""
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, stride=2),
        nn.GroupNorm(6, 6),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Flatten(),
        nn.Linear(864, 3),
    )


class _DroppingReader(nn.Module):
    """Two recurrent layers with dropout between them."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(30, 8)
        self.layers = nn.LSTM(8, 8, num_layers=2, dropout=0.5, batch_first=True)
        self.last = nn.Linear(8, 3)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return logits."""
        states, _ = self.layers(self.words(tokens))
        logits: Tensor = self.last(states[:, -1])
        return logits


class _DroppingAttention(nn.Module):
    """Attention with dropout of its weights."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(14, 2, dropout=0.5, batch_first=True)
        self.last = nn.Linear(28, 3)

    def forward(self, numbers: Tensor) -> Tensor:
        """Return logits."""
        parts = torch.stack((numbers, numbers + 1), 1)
        mixed, _ = self.attention(parts, parts, parts, need_weights=False)
        logits: Tensor = self.last(mixed.flatten(1))
        return logits


class _HiddenDropout(nn.Module):
    """Dropout that no module shows."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(14, 16), nn.Linear(16, 3)

    def forward(self, numbers: Tensor) -> Tensor:
        """Return logits."""
        hidden = nn.functional.dropout(self.first(numbers), 0.5, self.training)
        logits: Tensor = self.last(hidden)
        return logits
