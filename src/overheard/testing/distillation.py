"""Contract tests for distillation methods."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.learning.distillation.distillation import Distillation, DistillationResult
from overheard.learning.distillation.moments import zero_moments
from overheard.learning.distillation.synthetic import draw_noise_examples, stack_sets
from overheard.learning.initialization import initial_weights
from overheard.learning.models.lstm import Lstm
from overheard.learning.models.mlp import Mlp
from overheard.learning.training_job import ClientTask
from overheard.testing.require import require, require_part

TASK = Task((4,), ("a", "b", "c"))
BUILD = partial(Mlp(hidden=(8,)).build, TASK)
START = initial_weights(BUILD, Seed(0))
_DRAW = Seed(3).generator()
POOL = Examples(torch.randn(40, 4, generator=_DRAW), torch.randint(3, (40,), generator=_DRAW))
MEMBERS = [
    ClientTask("client/0", torch.arange(20)),
    ClientTask("client/1", torch.arange(20, 40)),
]


def check_distillation(distillation: Distillation) -> None:
    """Check that a distillation method satisfies the contract of distillations.

    Raises:
        AssertionError: naming the violated rule.

    """
    for check in DISTILLATION_CHECKS:
        check(distillation)


def is_frozen_dataclass_with_full_first_rate(distillation: Distillation) -> None:
    """Check that it is a final frozen dataclass, and that its rates start unscaled."""
    require_part(distillation)
    require(distillation.rate_scale(0) == 1, f"{distillation.name}.scale(0) is not 1")


def distils_one_set_per_client(distillation: Distillation) -> None:
    """Check that each client gets its own set, and the same set for the same seed."""
    method = _small(distillation)
    done, again = _distil(method), _distil(method)
    sets, name = done.examples, distillation.name
    shapes = (sets.inputs.shape, sets.labels.shape, sets.rates.shape, done.losses.shape)
    wanted = ((2, 6, 4), (2, 6, 3), (2, 6), (2,))
    require(shapes == wanted, f"{name} returns tensors of shapes {shapes}, expected {wanted}")
    require(sets.is_finite(), f"{name} returns NaN or infinity")
    same = all(one.equal(other) for one, other in zip(sets, again.examples, strict=True))
    require(same, f"{name}: the same seed gives a different set")
    require(
        not sets.inputs[0].equal(sets.inputs[1]), f"{name} returns the same set for two clients"
    )


def trains_each_client_independently(distillation: Distillation) -> None:
    """Check that trained weights depend on the initial weights and one set alone."""
    method, name = _small(distillation), distillation.name
    distiller = method.build_distiller(BUILD, START)
    sets = [draw_noise_examples(TASK, 2, method.first_rate, Seed(n)) for n in (5, 6)]
    both = distiller.train(stack_sets(sets))
    (alone,) = distiller.train(stack_sets(sets[1:]))
    require(list(alone) == list(START), f"{name} returns weights with other names")
    for key, one in alone.items():
        require(
            one.allclose(both[1][key], atol=1e-6),
            f"{name}: the weights trained on one set depend on the other sets",
        )
        require(not one.equal(START[key]), f"{name} does not train {key}")
    require(
        distiller.needed_bytes(6, 2) >= distiller.needed_bytes(6, 1) > 0,
        f"{name}: `needed_bytes` is 0, or smaller for more clients",
    )


def refuses_texts(distillation: Distillation) -> None:
    """Check that texts are refused with a PlanError."""
    build = partial(Lstm().build, Task((5,), ("a", "b"), vocabulary=9))
    try:
        distillation.build_distiller(build, initial_weights(build, Seed(0)))
    except PlanError as error:
        has_words = "take images or tables" in str(error)
        require(
            has_words,
            f"{distillation.name} must refuse texts with the words 'take images or tables'",
        )
    else:
        raise AssertionError(f"{distillation.name} accepts texts: raise a PlanError")


DISTILLATION_CHECKS: tuple[Callable[[Distillation], None], ...] = (
    is_frozen_dataclass_with_full_first_rate,
    distils_one_set_per_client,
    trains_each_client_independently,
    refuses_texts,
)


def _small(distillation: Distillation) -> Distillation:
    # Any: every part is a dataclass, but its interface does not state it.
    part: Any = distillation
    small: Distillation = replace(part, samples=2)
    return small


def _distil(
    method: Distillation, members: Sequence[ClientTask] = MEMBERS
) -> DistillationResult:
    shared = draw_noise_examples(TASK, method.samples, method.first_rate, Seed(1))
    before = shared.map(torch.clone)
    done = method.build_distiller(BUILD, START).distil(
        shared,
        POOL,
        members,
        zero_moments(shared, len(members)),
        round=0,
        rate_scale=1.0,
        seed=Seed(2),
    )
    is_unchanged = all(one.equal(other) for one, other in zip(shared, before, strict=True))
    require(is_unchanged, f"{method.name} changes the shared set in place: copy it first")
    return done
