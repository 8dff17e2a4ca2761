"""What every way to distil must keep to."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.learning.cohort import Member
from overheard.learning.distillation.distillation import Distillation, Distilled
from overheard.learning.distillation.moments import forgotten
from overheard.learning.distillation.synthetic import noise, stack
from overheard.learning.initial import initial_weights
from overheard.learning.models.lstm import Lstm
from overheard.learning.models.mlp import Mlp
from overheard.testing.require import require, require_part

TASK = Task((4,), ("a", "b", "c"))
BUILD = partial(Mlp(hidden=(8,)).build, TASK)
START = initial_weights(BUILD, Seed(0))
_DRAW = Seed(3).generator()
POOL = Examples(torch.randn(40, 4, generator=_DRAW), torch.randint(3, (40,), generator=_DRAW))
MEMBERS = [Member("client/0", torch.arange(20)), Member("client/1", torch.arange(20, 40))]


def check_distillation(distillation: Distillation) -> None:
    """Hold a way to distil to the contract of distillations.

    Raises:
        AssertionError: saying what it does not keep to.

    """
    for check in DISTILLATION_CHECKS:
        check(distillation)


def is_a_value_that_says_its_source(distillation: Distillation) -> None:
    """See that it is a final frozen dataclass, and starts with its full rates."""
    require_part(distillation)
    require(distillation.scale(0) == 1, f"{distillation.name}.scale(0) is not 1")


def gives_each_member_a_set_of_the_same_form(distillation: Distillation) -> None:
    """See that each member gets a set of its own, and the same each time."""
    how = _small(distillation)
    done, again = _distil(how), _distil(how)
    held, name = done.examples, distillation.name
    shapes = (held.inputs.shape, held.labels.shape, held.rates.shape, done.losses.shape)
    wanted = ((2, 6, 4), (2, 6, 3), (2, 6), (2,))
    require(shapes == wanted, f"{name} gives tensors of {shapes}, expected {wanted}")
    require(held.is_finite(), f"{name} gives numbers that are not finite")
    same = all(one.equal(other) for one, other in zip(held, again.examples, strict=True))
    require(same, f"{name}: the same seed gives another set")
    require(not held.inputs[0].equal(held.inputs[1]), f"{name} gives both members the same set")


def teaches_each_member_by_itself_from_the_first_weights(distillation: Distillation) -> None:
    """See that weights follow from the first weights and one set alone."""
    how, name = _small(distillation), distillation.name
    distiller = how.distiller(BUILD, START)
    sets = [noise(TASK, 2, how.first_rate, Seed(n)) for n in (5, 6)]
    both = distiller.train(stack(sets))
    (second,) = distiller.train(stack(sets[1:]))
    require(list(second) == list(START), f"{name} teaches weights of other names")
    for key, one in second.items():
        require(
            one.allclose(both[1][key], atol=1e-6),
            f"{name}: what a set teaches depends on the other sets",
        )
        require(not one.equal(START[key]), f"{name} teaches nothing to {key}")
    require(
        distiller.bytes_kept(6, 2) >= distiller.bytes_kept(6, 1) > 0,
        f"{name}: more members take less memory, or none",
    )


def refuses_texts(distillation: Distillation) -> None:
    """See that what cannot be distilled is a mistake of the plan."""
    build = partial(Lstm().build, Task((5,), ("a", "b"), vocabulary=9))
    try:
        distillation.distiller(build, initial_weights(build, Seed(0)))
    except PlanError as error:
        says = "take images or tables" in str(error)
        require(says, f"{distillation.name} must refuse texts by 'take images or tables'")
    else:
        raise AssertionError(f"{distillation.name} takes texts: raise a PlanError")


DISTILLATION_CHECKS: tuple[Callable[[Distillation], None], ...] = (
    is_a_value_that_says_its_source,
    gives_each_member_a_set_of_the_same_form,
    teaches_each_member_by_itself_from_the_first_weights,
    refuses_texts,
)


def _small(distillation: Distillation) -> Distillation:
    # Any: a dataclass, which the contract cannot say of itself.
    part: Any = distillation
    small: Distillation = replace(part, samples=2)
    return small


def _distil(how: Distillation, members: Sequence[Member] = MEMBERS) -> Distilled:
    shared = noise(TASK, how.samples, how.first_rate, Seed(1))
    before = shared.map(torch.clone)
    done = how.distiller(BUILD, START).distil(
        shared, POOL, members, forgotten(shared, len(members)), round=0, scale=1.0, seed=Seed(2)
    )
    kept = all(one.equal(other) for one, other in zip(shared, before, strict=True))
    require(kept, f"{how.name} changes the shared set in place: copy it first")
    return done
