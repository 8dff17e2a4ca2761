from dataclasses import dataclass, replace
from typing import ClassVar, final

import pytest
import torch

from overheard.core.defense import Defense, Moment, Site
from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.messages import Update
from overheard.core.seeds import Seed
from overheard.learning.cohort import Member
from overheard.learning.train import train_cohort
from overheard.linkage.learner import learners_of, together
from overheard.linkage.simulate_users import ANSWERED, SKETCH, SimulateUsers
from overheard.simulation.job_tensors import BROADCAST
from tests.linkage.peopled import priors
from tests.simulation.world import RECIPE, blobs, broadcast, build

LEARNERS = learners_of(priors(), 2)
JOB = SimulateUsers(1, LEARNERS, build, RECIPE, (), Seed(3), "cpu")
NAMES = tuple(broadcast(1))


def tensors(background: Examples | None = None) -> dict[str, torch.Tensor]:
    pool = together(priors())
    given = {"users/inputs": pool.inputs, "users/labels": pool.labels}
    if background is not None:
        given["background/inputs"] = background.inputs
        given["background/labels"] = background.labels
    return {**given, **{BROADCAST + name: w for name, w in broadcast(1).items()}}


@final
@dataclass(frozen=True)
class Spying(Defense):
    """Changes nothing, writes down when and where it was asked."""

    moments: list[Moment]

    name: ClassVar[str] = "spying"
    enforced_at: ClassVar[Site] = "client"

    def on_data(self, data: Examples, moment: Moment) -> Examples:
        self.moments.append(moment)
        return data


@final
@dataclass(frozen=True)
class Emptying(Defense):
    """Leaves nothing of whoever has one example; doubles what is sent."""

    name: ClassVar[str] = "emptying"
    enforced_at: ClassVar[Site] = "client"

    def on_data(self, data: Examples, moment: Moment) -> Examples:
        return data if len(data) > 1 else data.take(torch.arange(0))

    def on_update(self, update: Update, moment: Moment) -> Update:
        return replace(update, delta={name: 2 * d for name, d in update.delta.items()})


def test_learners_send_what_clients_with_their_examples_would() -> None:
    told = JOB.run(tensors())
    trained = train_cohort(
        build,
        broadcast(1),
        together(priors()),
        [Member(one.name, torch.arange(one.begin, one.end)) for one in LEARNERS],
        RECIPE,
        seed=Seed(3).child("training"),
        round=1,
    )
    assert told[ANSWERED].tolist() == list(range(len(LEARNERS)))
    for row, one in enumerate(trained):
        for name in NAMES:
            torch.testing.assert_close(told[SKETCH + name][row], one.delta[name].flatten())


def test_defenses_act_on_data_and_updates_and_the_emptied_do_not_answer() -> None:
    plain = JOB.run(tensors())
    told = replace(JOB, defenses=(Emptying(),)).run(tensors())
    # Of ann, ben and dot two pieces each; cid, the fifth, has one example and sends nothing.
    assert told[ANSWERED].tolist() == [0, 1, 2, 3, 5, 6]
    for name in NAMES:
        expected = 2 * plain[SKETCH + name][told[ANSWERED]]
        torch.testing.assert_close(told[SKETCH + name], expected)


def test_where_all_are_emptied_there_are_no_rows() -> None:
    alone = replace(JOB, learners=LEARNERS[4:5], defenses=(Emptying(),))
    told = alone.run(tensors())
    assert told[ANSWERED].tolist() == []
    assert {name: tuple(told[SKETCH + name].shape) for name in NAMES} == {
        name: (0, w.numel()) for name, w in broadcast(1).items()
    }


def test_defenses_are_told_of_the_background_and_draw_lasting_things_once() -> None:
    first, second = list[Moment](), list[Moment]()
    replace(JOB, defenses=(Spying(first),)).run(tensors(blobs(2)))
    replace(JOB, round=2, defenses=(Spying(second),)).run(tensors(blobs(2)))
    assert all(moment.background.inputs.equal(blobs(2).inputs) for moment in first)
    assert [one.lasting for one in first] == [one.lasting for one in second]
    assert len({one.lasting for one in first}) == len(LEARNERS)
    assert not {one.seed for one in first} & {one.seed for one in second}


def test_a_training_that_runs_away_is_told_with_its_mend() -> None:
    wild = replace(JOB, recipe=replace(RECIPE, rate=1e30, epochs=3))
    with pytest.raises(PlanError, match=r"known/ann/0 ran away in round 1.*lower the rate"):
        wild.run(tensors())
