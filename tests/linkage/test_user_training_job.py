from dataclasses import dataclass, replace
from typing import ClassVar, final

import pytest
import torch

from overheard.core.defense import Defense, DefenseContext
from overheard.core.errors import NeedsError
from overheard.core.examples import Examples
from overheard.core.mechanism import Site
from overheard.core.messages import Update
from overheard.core.seeds import Seed
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientTask
from overheard.linkage.prior_client import concatenate_users, split_priors
from overheard.linkage.user_training_job import ANSWERED, SKETCH_PREFIX, UserTrainingJob
from overheard.simulation.job_tensors import BROADCAST_PREFIX
from tests.linkage.four_users import priors
from tests.simulation.small_run import RECIPE, blobs, broadcast, build

LEARNERS = split_priors(priors(), 2)
JOB = UserTrainingJob(1, LEARNERS, build, RECIPE, (), Seed(3), "cpu")
NAMES = tuple(broadcast(1))


def tensors(background: Examples | None = None) -> dict[str, torch.Tensor]:
    pool = concatenate_users(priors())
    given = {"users/inputs": pool.inputs, "users/labels": pool.labels}
    if background is not None:
        given["background/inputs"] = background.inputs
        given["background/labels"] = background.labels
    return {**given, **{BROADCAST_PREFIX + name: w for name, w in broadcast(1).items()}}


@final
@dataclass(frozen=True)
class Spying(Defense):
    """Changes nothing, and records its contexts."""

    moments: list[DefenseContext]

    name: ClassVar[str] = "spying"
    enforced_at: ClassVar[Site] = "client"

    def on_data(self, data: Examples, context: DefenseContext) -> Examples:
        self.moments.append(context)
        return data


@final
@dataclass(frozen=True)
class Emptying(Defense):
    """Removes the data of clients with one example; doubles updates."""

    name: ClassVar[str] = "emptying"
    enforced_at: ClassVar[Site] = "client"

    def on_data(self, data: Examples, context: DefenseContext) -> Examples:
        return data if len(data) > 1 else data.take(torch.arange(0))

    def on_update(self, update: Update, context: DefenseContext) -> Update:
        return replace(update, delta={name: 2 * d for name, d in update.delta.items()})


def test_virtual_clients_send_the_same_updates_as_real_clients() -> None:
    result = JOB.run(tensors())
    trained = train_cohort(
        build,
        broadcast(1),
        concatenate_users(priors()),
        [ClientTask(one.name, torch.arange(one.begin, one.end)) for one in LEARNERS],
        RECIPE,
        seed=Seed(3).child("training"),
        round=1,
    )
    assert result[ANSWERED].tolist() == list(range(len(LEARNERS)))
    for row, one in enumerate(trained):
        for name in NAMES:
            torch.testing.assert_close(
                result[SKETCH_PREFIX + name][row], one.delta[name].flatten()
            )


def test_defenses_act_and_clients_without_examples_do_not_reply() -> None:
    plain = JOB.run(tensors())
    result = replace(JOB, defenses=(Emptying(),)).run(tensors())
    # ann, ben and dot have two chunks each; cid, the fifth, has one example and sends nothing.
    assert result[ANSWERED].tolist() == [0, 1, 2, 3, 5, 6]
    for name in NAMES:
        expected = 2 * plain[SKETCH_PREFIX + name][result[ANSWERED]]
        torch.testing.assert_close(result[SKETCH_PREFIX + name], expected)


def test_without_examples_there_are_no_rows() -> None:
    alone = replace(JOB, clients=LEARNERS[4:5], defenses=(Emptying(),))
    result = alone.run(tensors())
    assert result[ANSWERED].tolist() == []
    assert {name: tuple(result[SKETCH_PREFIX + name].shape) for name in NAMES} == {
        name: (0, w.numel()) for name, w in broadcast(1).items()
    }


def test_defenses_get_the_background_and_a_persistent_seed() -> None:
    first, second = list[DefenseContext](), list[DefenseContext]()
    replace(JOB, defenses=(Spying(first),)).run(tensors(blobs(2)))
    replace(JOB, round=2, defenses=(Spying(second),)).run(tensors(blobs(2)))
    assert all(moment.background.inputs.equal(blobs(2).inputs) for moment in first)
    assert [one.persistent_seed for one in first] == [one.persistent_seed for one in second]
    assert len({one.persistent_seed for one in first}) == len(LEARNERS)
    assert not {one.seed for one in first} & {one.seed for one in second}


def test_a_diverging_training_is_refused_with_a_remedy() -> None:
    wild = replace(JOB, recipe=replace(RECIPE, rate=1e30, epochs=3))
    with pytest.raises(NeedsError, match=r"known/ann/0 diverged in round 1.*lower the rate"):
        wild.run(tensors())
