"""No computation mixes tensors of a GPU and of the CPU; see tests/pretended_device.py.

Each test computes the same on the CPU and on the pretended device, which computes there too and
checks the devices first. So both results are equal up to the rounding of other kernels.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from unittest.mock import patch

import pytest
import torch
from torch import Tensor, nn

from overheard.core.defense import BuildModel, Defense, LocalTraining
from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.messages import Update, Weights
from overheard.core.parties import client
from overheard.core.recipe import PrivateSteps, Recipe
from overheard.core.task import Task
from overheard.learning.distillation.distillation import Distillation
from overheard.learning.distillation.methods.distribution_matching import (
    DistributionMatching,
)
from overheard.learning.distillation.methods.flip import Flip
from overheard.learning.distillation.moments import zero_moments
from overheard.learning.distillation.synthetic import draw_noise_examples
from overheard.learning.engines.side_by_side import (
    can_train_side_by_side,
    train_side_by_side,
)
from overheard.learning.evaluate import logits_of_models
from overheard.learning.example_gradients import example_gradients, mean_example_gradient
from overheard.learning.features import features_of_models
from overheard.learning.fitting.share_network import (
    FitSchedule,
    fit_share_network,
    kl_divergence,
)
from overheard.learning.model import Model
from overheard.learning.models.conv_net import ConvNet
from overheard.learning.models.mobilenet import MobileNet
from overheard.learning.models.transformer import Transformer
from overheard.learning.train import Engine, train_cohort
from overheard.learning.training_job import ClientTask, TrainingGroup, TrainingJob
from overheard.plans.registries import DEFENSES, MODELS
from overheard.questions.label_shares.attacks.ldia import build_ldia_network
from overheard.questions.label_shares.attacks.ppa import (
    DifferentialSensitivity,
)
from overheard.questions.label_shares.attacks.whispers import AttentiveRecurrence
from overheard.simulation.auxiliary_logits import AuxiliaryLogits
from overheard.simulation.class_gradient_fit import ClassGradientFit
from overheard.simulation.last_layer_change import LastLayerChange
from overheard.simulation.simulation import run_simulation
from overheard.simulation.unexplained_update import UnexplainedUpdate
from overheard.simulation.update_norms import InputNorms, UpdateNorms
from overheard.testing.defense import make_client_examples, make_context, make_delta
from tests.learning.cases import (
    CONVOLUTIONS,
    FLOAT_LABEL_RECIPES,
    IMAGES,
    MLP,
    RECIPES,
    SEED,
    TABLE,
    TEXTS,
    image_normed,
    pool_of,
    start_of,
)
from tests.pretended_device import (
    REAL_DEVICE,
    DeviceTensor,
    MixedDevicesError,
    device_under_test,
    pretended_device,
)
from tests.simulation.small_run import Raw, knowledge, server_view

COLOURS = Task((3, 32, 32), ("a", "b", "c"))
TWO_CLASSES = Task((4,), ("a", "b"))
THREE_STEPS = Recipe(rate=0.1, epochs=3, batch=4)
ONE_STEP = replace(THREE_STEPS, epochs=1)

SMALLER: dict[str, Model] = {
    "conv_net": ConvNet(width=4),
    "mobilenet": MobileNet(alpha=0.25),
    "transformer": Transformer(width=8, depth=1, heads=2, rank=2),
}
"""Models whose default size takes long; the transformer with adapters."""

CLIENTS = (ClientTask("client/0", torch.arange(4)), ClientTask("client/1", torch.arange(4, 6)))
ENGINES: tuple[Engine, ...] = ("sequential", "stacked", *(["auto"] if REAL_DEVICE else []))
"""On a real device, "auto" trains those that cannot be stacked side by side."""

LEFT_OUT = ("own", "unknown", "resnet18", "vgg16")
"""No networks of their own, and two that take 20 s. Other models have all of their layers."""

OWN_ERRORS = 3
"""How many times the CPU's own error in float32 an update may differ, if that is more: once for
the CPU, twice for the device."""

TAKING_ONE_STEP = ("alexnet", "mobilenet", "tiny_resnet")
"""Deep networks, and those with a batch norm, which amplify the rounding of earlier steps."""

LIMITS = {torch.float32: 1e-4, torch.float64: 1e-9}
"""The most that an update may differ from the CPU's, relative to its size."""

DTYPES = list(LIMITS) if REAL_DEVICE else [torch.float64]
"""The pretended device rounds as a CPU does, so float64 alone shows what is computed wrongly.
Recipes and defenses train in float32 there."""

ARCHITECTURES = [one for one in MODELS.plugins() if one not in LEFT_OUT]


def architecture(name: str) -> tuple[BuildModel, Task]:
    """Return the first task that a model can be built for, and its builder."""
    model = SMALLER.get(name) or MODELS.plugins()[name]()
    for task in (TABLE, IMAGES, COLOURS, TEXTS, TWO_CLASSES):
        build = partial(model.build, task)
        try:
            build()
        except PlanError:
            continue
        return build, task
    raise AssertionError(f"no task for {name}")


CHANGING_TRAINING = [
    name
    for name, defense in DEFENSES.plugins().items()
    if defense.on_training is not Defense.on_training
]


def recipe_of(name: str) -> Recipe:
    """Return how a model trains."""
    return ONE_STEP if name in TAKING_ONE_STEP else THREE_STEPS


def relative_difference(one: Weights, other: Weights) -> float:
    """Return the L2 norm of the difference of two updates, over that of the first."""
    assert one.keys() == other.keys()
    apart, size = (
        torch.stack([part.double().norm() for part in parts]).norm()
        for parts in ([other[name] - one[name] for name in one], one.values())
    )
    return float(apart / size)


def train(
    build: BuildModel,
    task: Task,
    recipe: Recipe,
    engine: Engine,
    device: torch.device | str,
    *,
    is_corrected: bool = False,
    dtype: torch.dtype = torch.float32,
) -> list[Weights]:
    """Return the updates of both clients."""
    start, clients = start_of(build, dtype), list(CLIENTS)
    if is_corrected:
        correction = {name: torch.full_like(one, 0.01) for name, one in start.items()}
        clients[0] = replace(clients[0], correction=correction)
    results = train_cohort(
        build,
        start,
        pool_of(task, dtype, 6),
        clients,
        recipe,
        seed=SEED,
        round=0,
        engine=engine,
        device=device,
    )
    return [one.delta for one in results]


def check_training(
    build: BuildModel, task: Task, recipe: Recipe, engine: Engine, *, is_corrected: bool = False
) -> None:
    here = train(build, task, recipe, engine, "cpu", is_corrected=is_corrected)
    with device_under_test() as device:
        there = train(build, task, recipe, engine, device, is_corrected=is_corrected)
    for one, other in zip(here, there, strict=True):
        assert not any(isinstance(part, DeviceTensor) for part in other.values())
        assert relative_difference(one, other) < LIMITS[torch.float32]


@cache
def trained_here(name: str, dtype: torch.dtype) -> list[Weights]:
    """Return the updates of both clients from the CPU, one client after the other."""
    build, task = architecture(name)
    return train(build, task, recipe_of(name), "sequential", "cpu", dtype=dtype)


@pytest.mark.parametrize("name", ARCHITECTURES)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")
def test_every_model_trains(name: str, engine: Engine, dtype: torch.dtype) -> None:
    build, task = architecture(name)
    with device_under_test() as device:
        try:
            there = train(build, task, recipe_of(name), engine, device, dtype=dtype)
        except PlanError:
            pytest.skip("this engine refuses such networks")
    for one, other in zip(trained_here(name, dtype), there, strict=True):
        assert not any(isinstance(part, DeviceTensor) for part in other.values())
        assert {part.dtype for part in other.values()} <= {dtype}
        limit = max(LIMITS[dtype], OWN_ERRORS * own_error(name, dtype))
        assert relative_difference(one, other) < limit


SIDE_BY_SIDE: dict[str, tuple[BuildModel, Task]] = {
    "batch norm": (image_normed, IMAGES),
    **({one: architecture(one) for one in ARCHITECTURES} if REAL_DEVICE else {}),
}


@pytest.mark.parametrize("name", SIDE_BY_SIDE)
def test_networks_train_side_by_side(name: str) -> None:
    """On a GPU by recorded steps; what cannot be recorded there warns, and fails here."""
    build, task = SIDE_BY_SIDE[name]
    recipe = replace(ONE_STEP, epochs=6)
    if not can_train_side_by_side(build(), recipe):
        pytest.skip("its steps draw random numbers")
    here = train(build, task, recipe, "sequential", "cpu", dtype=torch.float64)
    start, pool = start_of(build, torch.float64), pool_of(task, torch.float64, 6)
    with device_under_test() as device:
        job = TrainingJob(build, start, pool, recipe, SEED, 0, device)
        group = TrainingGroup(start, pool, CLIENTS, SEED)
        there = [one.delta for one in train_side_by_side(build(), [job], [group], lanes=2)]
    for one, other in zip(here, there, strict=True):
        assert not any(isinstance(part, DeviceTensor) for part in other.values())
        assert relative_difference(one, other) < LIMITS[torch.float64]


def own_error(name: str, dtype: torch.dtype) -> float:
    """Return the CPU's own error, which is large where a network amplifies rounding."""
    exact = trained_here(name, torch.float64)
    return max(map(relative_difference, exact, trained_here(name, dtype)))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", CHANGING_TRAINING)
def test_every_defense_of_training_trains(name: str, engine: Engine) -> None:
    changed = DEFENSES.plugins()[name]().on_training(LocalTraining(MLP, THREE_STEPS))
    check_training(changed.build_model, TABLE, changed.recipe, engine)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("build", [MLP, CONVOLUTIONS])
@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_trains(recipe: str, build: BuildModel, engine: Engine) -> None:
    task = TABLE if build is MLP else IMAGES
    check_training(
        build, task, replace(RECIPES[recipe], epochs=1), engine, is_corrected=recipe == "sgd"
    )


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("build", [MLP, CONVOLUTIONS])
def test_private_steps_train(build: BuildModel, engine: Engine) -> None:
    private = replace(ONE_STEP, private_steps=PrivateSteps(0.5, 1.0, 3, "poisson"))
    check_training(build, TABLE if build is MLP else IMAGES, private, engine)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("labels", FLOAT_LABEL_RECIPES)
def test_tasks_without_classes_train(labels: str, engine: Engine) -> None:
    task, recipe = FLOAT_LABEL_RECIPES[labels]
    check_training(lambda: nn.Sequential(nn.Linear(6, 3)), task, recipe, engine)


def test_a_tensor_left_on_the_cpu_is_found() -> None:
    """What the tests above would show if a copy to the device were missing in training."""
    # The labels stay behind, as if `_descend` did not copy them, and the pool without them.
    stuck = {
        "sequential": property(lambda examples: _Stuck(examples.labels)),
        "stacked": property(lambda examples: examples.labels.cpu()),
    }
    for engine, labels in stuck.items():
        with (
            pretended_device() as device,
            patch.object(Examples, "loss_labels", labels),
            pytest.raises(MixedDevicesError),
        ):
            train(MLP, TABLE, ONE_STEP, engine, device)


class _Stuck:
    """A tensor that `.to(device)` leaves on the CPU."""

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor

    def to(self, device: torch.device) -> Tensor:
        return self._tensor

    def __getitem__(self, rows: Tensor) -> Tensor:
        return self._tensor[rows]


@pytest.mark.parametrize("name", ARCHITECTURES)
@pytest.mark.parametrize("outputs", [logits_of_models, features_of_models])
def test_every_model_is_evaluated(name: str, outputs: Callable) -> None:
    build, task = architecture(name)
    models, inputs = (
        [start_of(build, torch.float32)] * 2,
        pool_of(task, torch.float32, 3).inputs,
    )
    here = list(outputs(build, models, inputs))
    with device_under_test() as device:
        there = list(outputs(build, models, inputs, device=device))
    for one, other in zip(here, there, strict=True):
        assert not isinstance(other, DeviceTensor)
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


# torch's rule for several networks reads norms of the pretended device wrongly, so no norms.
DIFFERENTIATED = ("decaf_conv2", "logistic", "lstm", "mlp", "text_bag", "transformer")


@pytest.mark.parametrize("name", DIFFERENTIATED)
@pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")
def test_gradients_of_examples(name: str) -> None:
    build, task = architecture(name)

    def gradients(device: torch.device | str) -> list[Tensor]:
        weights = {n: one.to(device) for n, one in start_of(build, torch.float32).items()}
        examples = pool_of(task, torch.float32, 3).to(device)
        return [
            example_gradients(build, weights, examples, ONE_STEP).cpu(),
            mean_example_gradient(build, weights, examples, ONE_STEP).cpu(),
        ]

    here = gradients("cpu")
    with device_under_test() as device:
        there = gradients(device)
    torch.testing.assert_close(here, there)


PROBES = (
    AuxiliaryLogits(),
    ClassGradientFit(),
    DifferentialSensitivity(epochs=1),
    InputNorms(),
    LastLayerChange(),
    Raw(),
    UnexplainedUpdate(),
    UpdateNorms(),
)


@pytest.mark.slow
@pytest.mark.parametrize("members", [None, 3])
def test_every_probe_reads_virtual_clients(members: int | None) -> None:
    def read(device: str) -> list[Tensor]:
        attacker = knowledge(virtual=6)
        compute = replace(attacker.compute, device=device)
        simulation = run_simulation(
            server_view(),
            replace(attacker, compute=compute),
            (0, 1),
            PROBES,
            cohort_size=members,
        )
        return [simulation.readings[probe] for probe in PROBES]

    here = read("cpu")
    with device_under_test() as device:
        there = read(str(device))
    torch.testing.assert_close(here, there, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", DEFENSES.plugins())
def test_every_defense_changes_data_and_updates(name: str) -> None:
    """Also those of updates and data that are still on the device."""
    defense = DEFENSES.plugins()[name]()

    def change(device: torch.device | str) -> list[Tensor]:
        data = defense.on_data(make_client_examples().to(device), make_context(0))
        delta = {part: one.to(device) for part, one in make_delta().items()}
        update = defense.on_update(Update(delta), replace(make_context(0), party=client(1)))
        return [one.cpu() for one in (*data.tensors(), *update.delta.values())]

    here = change("cpu")
    with device_under_test() as device:
        there = change(device)
    torch.testing.assert_close(here, there)


SHARE_NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "ldia": partial(build_ldia_network, 5, 8, 3, convolutions=True),
    "ppa": lambda: nn.Sequential(nn.Flatten(), nn.Linear(40, 3)),
    "whispers": partial(AttentiveRecurrence, 8, 3, 4),
}
"""The networks that attacks on label shares fit, for inputs of five rounds of eight numbers."""


@pytest.mark.parametrize("name", SHARE_NETWORKS)
def test_share_networks_are_fitted(name: str) -> None:
    drawn = torch.rand(6, 43, generator=SEED.generator())
    inputs, shares = drawn[:, :40].view(6, 5, 8), drawn[:, 40:].softmax(1)

    def outputs(device: str) -> Tensor:
        schedule = FitSchedule(epochs=2, batch=4, slow_after=1)
        network = fit_share_network(
            SHARE_NETWORKS[name], inputs, shares, kl_divergence, schedule, SEED, device
        )
        predicted: Tensor = network(inputs)
        return predicted

    here = outputs("cpu")
    with device_under_test() as device:
        there = outputs(str(device))
    assert not isinstance(there, DeviceTensor)
    torch.testing.assert_close(here, there)


class _Untraced:
    """A function in place of its traced operations, whose tensors would hide the device."""

    def __init__(self, function: Callable) -> None:
        self._function = function
        self.graph = torch.fx.Graph()

    def recompile(self) -> None:
        """Keep the function."""

    def __call__(self, *arguments: object) -> object:
        return self._function(*arguments)


def _leave_untraced(function: Callable) -> Callable[..., _Untraced]:
    """Return what traces a function, as `make_fx` does, but keeps it as it is."""
    return lambda *arguments: _Untraced(function)


@pytest.mark.slow
@pytest.mark.parametrize(
    "method",
    [DistributionMatching(samples=2), Flip(samples=2, steps=2, batch=3, at_once=3)],
    ids=lambda method: method.name,
)
def test_examples_are_distilled(method: Distillation) -> None:
    shared = draw_noise_examples(TABLE, 2, method.first_rate, SEED)

    def distil(device: torch.device | str) -> list[Tensor]:
        distiller = method.build_distiller(MLP, start_of(MLP, torch.float32), device)
        pool, moments = pool_of(TABLE, torch.float32, 6), zero_moments(shared, len(CLIENTS))
        done = distiller.distil(
            shared, pool, CLIENTS, moments, round=0, rate_scale=1.0, seed=SEED
        )
        trained = distiller.train(done.examples)
        return [*done.examples, *(one for weights in trained for one in weights.values())]

    here = distil("cpu")
    module = "overheard.learning.distillation.unrolled_training.make_fx"
    with device_under_test() as device, patch(module, _leave_untraced):
        there = distil(device)
    assert not any(isinstance(one, DeviceTensor) for one in there)
    torch.testing.assert_close(here, there)
