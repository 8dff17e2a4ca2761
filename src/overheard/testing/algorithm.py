"""Contract tests for algorithms."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch

from overheard.core.algorithm.algorithm import (
    LOCAL_STEPS,
    Algorithm,
    ReceivedUpdate,
    ServerState,
)
from overheard.core.messages import Update, Weights, weighted_sum
from overheard.core.parties import client
from overheard.core.recipe import Recipe
from overheard.testing.require import require, require_part

RECIPE = Recipe(rate=0.1, epochs=1, batch=8)

ROUNDS = 4

SHAPES = {"layer.weight": (3, 4), "layer.bias": (3,)}


def check_algorithm(algorithm: Algorithm) -> None:
    """Check that an algorithm satisfies the contract of algorithms.

    Raises:
        AssertionError: naming the violated rule.

    """
    for check in ALGORITHM_CHECKS:
        check(algorithm)


def is_frozen_dataclass(algorithm: Algorithm) -> None:
    """Check that it is a final frozen dataclass."""
    require_part(algorithm)


def says_what_it_gives_away(algorithm: Algorithm) -> None:
    """Check that a paragraph of its docstring begins with "Leak:"."""
    text = type(algorithm).__doc__ or ""
    paragraphs = [part.strip() for part in text.split("\n\n")]
    require(
        any(part.startswith("Leak:") for part in paragraphs),
        f"{algorithm.name}: write a paragraph 'Leak: ...' on what observers learn",
    )


def steps_depend_on_arguments_alone(algorithm: Algorithm) -> None:
    """Check that the same rounds give the same bits, and that no argument is changed."""
    one, other = _run(algorithm), _run(algorithm)
    require(
        all(map(_are_equal, one.weights_of_rounds, other.weights_of_rounds)),
        f"{algorithm.name}: the same updates give other weights",
    )
    fresh = _Run(algorithm)
    for number in range(ROUNDS):
        before = {name: tensor.clone() for name, tensor in fresh.state.weights.items()}
        kept = fresh.state
        fresh.step(number)
        require(
            _are_equal(before, kept.weights),
            f"{algorithm.name}.next_state changes the weights in place",
        )


def keeps_no_memory_unless_declared(algorithm: Algorithm) -> None:
    """Check that an algorithm with a memory says so, as a resumed run then reads all rounds."""
    require(
        algorithm.has_memory or not _run(algorithm).state.memory,
        f"{algorithm.name} keeps tensors between rounds: set has_memory = True",
    )


def tells_the_mean_update_correctly(algorithm: Algorithm) -> None:
    """Check that broadcasts give the mean update, unless `hidden_mean` says otherwise."""
    if algorithm.hidden_mean:
        return
    run, before = _run(algorithm), None
    pairs = zip(run.weights_of_rounds[:-1], run.weights_of_rounds[1:], strict=True)
    for (start, end), mean in zip(pairs, run.means, strict=True):
        change = {name: end[name] - start[name] for name in start}
        told = change if algorithm.adds_mean else algorithm.mean_of_round(change, before)
        require(
            all(torch.allclose(told[name], mean[name], atol=1e-9) for name in mean),
            f"{algorithm.name}: the broadcasts do not give the mean update: correct "
            "mean_of_round, or say why in hidden_mean",
        )
        before = change


def weights_updates_of_copies(algorithm: Algorithm) -> None:
    """Check that a client sampled twice counts twice: as two clients with the same update."""
    first, second = _updates(0)[:2]
    twice = algorithm.factors([replace(first, copies=2), second])
    apart = algorithm.factors([first, first, second])
    require(
        abs(twice[0] - apart[0] - apart[1]) < 1e-9 and abs(twice[1] - apart[2]) < 1e-9,
        f"{algorithm.name}.factors: a client sampled twice does not count twice",
    )


ALGORITHM_CHECKS: Sequence[Callable[[Algorithm], None]] = (
    is_frozen_dataclass,
    says_what_it_gives_away,
    steps_depend_on_arguments_alone,
    keeps_no_memory_unless_declared,
    tells_the_mean_update_correctly,
    weights_updates_of_copies,
)
"""Every check of an algorithm, by its name."""


class _Run:
    """A few rounds of made-up updates in float64."""

    def __init__(self, algorithm: Algorithm) -> None:
        self._algorithm = algorithm
        self.state = ServerState(_random(99))
        self.weights_of_rounds = [self.state.weights]
        self.means = list[Weights]()

    def step(self, number: int) -> None:
        steps = self._algorithm.reported_steps(RECIPE, 2)
        reported = {} if steps is None else {LOCAL_STEPS: steps}
        received = [
            replace(one, update=replace(one.update, metrics=reported))
            for one in _updates(number)
        ]
        deltas = [one.update.delta for one in received]
        mean = weighted_sum(deltas, self._algorithm.factors(received))
        self.state = self._algorithm.next_state(number, self.state, mean, received)
        self.means.append(mean)
        self.weights_of_rounds.append(self.state.weights)


def _run(algorithm: Algorithm) -> _Run:
    run = _Run(algorithm)
    for number in range(ROUNDS):
        run.step(number)
    return run


def _updates(number: int) -> list[ReceivedUpdate]:
    metrics = {LOCAL_STEPS: 2.0}
    return [
        ReceivedUpdate(client(place), Update(_random(10 * number + place), 5 + place, metrics))
        for place in range(3)
    ]


def _random(seed: int) -> Weights:
    draw = torch.Generator().manual_seed(seed)
    return {
        name: torch.randn(shape, generator=draw, dtype=torch.float64)
        for name, shape in SHAPES.items()
    }


def _are_equal(one: Weights, other: Weights) -> bool:
    return all(torch.equal(one[name], other[name]) for name in one)
