from dataclasses import dataclass, replace
from typing import ClassVar, final

import pytest
import torch

from overheard.core.defense import Defense, DefenseContext
from overheard.core.errors import NeedsError
from overheard.core.examples import Examples, concatenate_examples
from overheard.core.mechanism import Site
from overheard.core.seeds import Seed
from overheard.defenses.local_dp import LocalDp
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientTask
from overheard.questions.membership.estimators.shadow_training_job import (
    IS_MEMBER_TENSOR,
    LOGITS_TENSOR,
    ShadowTrainingJob,
)
from overheard.simulation.job_tensors import BROADCAST_PREFIX
from tests.simulation.small_run import CLASSES, RECIPE, blobs, broadcast, build

AUXILIARY, RECORDS = blobs(4, seed=1), blobs(6, seed=2)
JOB = ShadowTrainingJob(1, range(2, 5), 10, True, build, RECIPE, Seed(3), "cpu")


@final
@dataclass(frozen=True, slots=True)
class Blank(Defense):
    """Replaces all inputs by zeros."""

    name: ClassVar[str] = "blank"
    enforced_at: ClassVar[Site] = "client"

    def on_data(self, data: Examples, context: DefenseContext) -> Examples:
        return Examples(torch.zeros_like(data.inputs), data.labels)


def tensors() -> dict[str, torch.Tensor]:
    return {
        "auxiliary/inputs": AUXILIARY.inputs,
        "auxiliary/labels": AUXILIARY.labels,
        "records/inputs": RECORDS.inputs,
        "records/labels": RECORDS.labels,
        **{BROADCAST_PREFIX + name: weight for name, weight in broadcast(1).items()},
    }


def test_logits_are_those_of_a_model_trained_on_the_stated_records() -> None:
    result = JOB.run(tensors())
    assert result[LOGITS_TENSOR].shape == (3, len(RECORDS), CLASSES)
    # The remaining ones of its ten examples are among the twelve auxiliary examples.
    rows = torch.randperm(30, generator=Seed(3).child("shadow", 4).generator())[:10]
    assert result[IS_MEMBER_TENSOR][2].nonzero().flatten().tolist() == sorted(
        row - 12 for row in rows.tolist() if row >= 12
    )
    (trained,) = train_cohort(
        build,
        broadcast(1),
        concatenate_examples((AUXILIARY, RECORDS)),
        [ClientTask("shadow/4", rows)],
        RECIPE,
        seed=Seed(3).child("training"),
        round=1,
    )
    model = build()
    model.load_state_dict(
        {name: weight + trained.delta[name] for name, weight in broadcast(1).items()}
    )
    expected = model(RECORDS.inputs).detach()
    torch.testing.assert_close(result[LOGITS_TENSOR][2], expected, atol=1e-4, rtol=1e-4)


def test_a_model_has_equal_examples_in_all_rounds_and_other_logits() -> None:
    first, later = JOB.run(tensors()), replace(JOB, round=2).run(tensors())
    assert first[IS_MEMBER_TENSOR].equal(later[IS_MEMBER_TENSOR])
    assert not first[LOGITS_TENSOR].equal(later[LOGITS_TENSOR])


def test_refuses_a_diverging_training() -> None:
    wild = replace(JOB, recipe=replace(RECIPE, rate=1e30, epochs=3))
    with pytest.raises(NeedsError, match="training of shadow/2 diverged in round 1"):
        wild.run(tensors())


def test_known_defenses_change_what_an_observer_computes() -> None:
    # Clipped to a norm of 1e-9, no model differs from the broadcast.
    still = replace(JOB, defenses=(LocalDp(clip=1e-9, noise_multiplier=0.0),))
    model = build()
    model.load_state_dict(broadcast(1))
    expected = model(RECORDS.inputs).detach()
    for logits in still.run(tensors())[LOGITS_TENSOR]:
        torch.testing.assert_close(logits, expected, atol=1e-4, rtol=1e-4)


def test_known_defenses_of_data_change_what_models_train_on() -> None:
    # All records are replaced by zeros before training, so only labels can be learned.
    plain, blank = JOB.run(tensors()), replace(JOB, defenses=(Blank(),)).run(tensors())
    assert plain[IS_MEMBER_TENSOR].equal(blank[IS_MEMBER_TENSOR])
    assert not plain[LOGITS_TENSOR].allclose(blank[LOGITS_TENSOR], atol=0.05)
