"""What lies outside of a run: observers and data."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from overheard.auditing.inputs import draw_external_auxiliary
from overheard.auditing.program import refuse_unknown_observers
from overheard.core.errors import PlanError
from overheard.core.examples import Examples, without_classes
from overheard.core.needs import METADATA, TRAINED_MODEL, UPDATES
from overheard.core.parties import COHORT, NETWORK, RELEASE, SERVER, client, late_joiner
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.data.dataset import Dataset
from overheard.data.partition.candidates import CandidateSettings
from overheard.data.partition.data_partition import AuxiliarySize
from overheard.data.splits.iid import Iid
from overheard.learning.models.custom import Own
from overheard.plans.plan import Plan, ThreatPlan
from overheard.questions.label_shares.attacks.bias_inversion import BiasInversion
from overheard.questions.membership.attacks.loss_membership import LossMembership
from overheard.questions.same_sender.attacks.metadata_link import MetadataLink
from overheard.recorders.folder_import import import_recording
from tests.auditing.conftest import audit_here
from tests.auditing.plans import SECURE_AGGREGATION, TINY, replace_tables


def membership_plan(*threats: ThreatPlan) -> Plan:
    """Clients that learn their few examples by heart."""
    records = CandidateSettings(members=10, outsiders=30)
    data = TINY.data.model_copy(update={"candidates": records, "split": Iid()})
    training = TINY.training.model_copy(update={"rate": 0.5, "epochs": 40})
    return replace_tables(TINY, data=data, training=training, threats=threats)


def test_the_final_model_tells_of_members_and_single_clients_are_refused(
    tmp_path: Path,
) -> None:
    reader = ThreatPlan(
        observers=("release",),
        attacks=(LossMembership(), BiasInversion()),
        about="cohort",
        by_round=False,
    )
    single = ThreatPlan(observers=("release",), attacks=(LossMembership(),))
    found = audit_here(membership_plan(reader, single), tmp_path)
    (one,) = found.findings
    assert (one.target, one.cell.observers) == (COHORT, (RELEASE,))
    auc = next(score for score in one.scores if score.name == "membership_auc")
    assert auc.value > 0.55
    refused = {(one.cell.part, one.target): one.missing for one in found.refusals}
    assert refused["bias_inversion", COHORT] == (UPDATES.description,)
    for number in range(3):
        assert refused["loss_membership", client(number)] == (TRAINED_MODEL.description,)


def test_a_late_joiner_learns_of_the_rounds_after_it_joined(tmp_path: Path) -> None:
    threats = tuple(
        ThreatPlan(observers=(f"late/{number}",), attacks=(BiasInversion(),), about="cohort")
        for number in (0, 1, 2)
    )
    found = audit_here(replace_tables(TINY, threats=threats), tmp_path)
    told = {(one.cell.observers[0], one.sent_rounds) for one in found.findings}
    # Of 2 rounds, the one who joins in round 2 has the final model alone.
    assert told == {
        (late_joiner(0), (0, 1)),
        (late_joiner(0), (0,)),
        (late_joiner(0), (1,)),
        (late_joiner(1), (1,)),
    }
    (refused,) = found.refusals
    assert refused.cell.observers == (late_joiner(2),)
    assert refused.missing == (UPDATES.description,)


def test_the_network_is_refused_whatever_needs_content(tmp_path: Path) -> None:
    by_network = ThreatPlan(observers=("network",), attacks=(BiasInversion(), LossMembership()))
    found = audit_here(membership_plan(by_network), tmp_path)
    assert found.findings == ()
    assert {one.missing for one in found.refusals} == {
        (UPDATES.description,),
        (TRAINED_MODEL.description,),
    }
    assert {one.cell.observers for one in found.refusals} == {(NETWORK,)}


def test_a_server_and_a_client_together_learn_what_both_can_read(tmp_path: Path) -> None:
    """Masks hide single updates from both; they subtract the client's own from the mean."""
    both = ThreatPlan(
        observers=("server", "client/0"), attacks=(BiasInversion(),), by_round=False
    )
    about_others = both.model_copy(update={"about": "cohort"})
    plan = replace_tables(TINY, threats=(both, about_others))
    plan = replace_tables(plan, arms=(*plan.arms, SECURE_AGGREGATION))
    found = audit_here(plan, tmp_path)
    claims = {(one.cell.arm, one.target) for one in found.findings}
    assert claims == {
        ("no defense", client(1)),
        ("no defense", client(2)),
        ("no defense", COHORT),
        ("secure aggregation", COHORT),
    }
    assert {one.cell.observers for one in found.findings} == {(SERVER, client(0))}


EXPERIMENT = Path(__file__).parents[1] / "recorders" / "formats" / "experiments" / "plain"


def test_the_same_rule_holds_for_a_recording(tmp_path: Path) -> None:
    """A real run of Fed-BioMed with 4 rounds, whose messages have no times of a network."""
    import_recording(EXPERIMENT, tmp_path / "run")
    threats = tuple(
        ThreatPlan(
            observers=(name,),
            attacks=(BiasInversion(),),
            about=about,
            by_round=False,
        )
        for name, about in (("late/2", "cohort"), ("release", "cohort"), ("network", "clients"))
    )
    plan = replace_tables(TINY, threats=threats)
    model = Own(f"{__name__}:build_digits_net")
    plan = replace_tables(plan, training=plan.training.model_copy(update={"model": model}))
    found = audit_here(plan, tmp_path / "out", recording=tmp_path / "run")
    (late,) = found.findings
    assert (late.cell.observers, late.sent_rounds) == ((late_joiner(2),), (2, 3))
    refused = [(one.cell.observers[0], one.missing) for one in found.refusals]
    assert (
        refused == [(RELEASE, (UPDATES.description,))] + [(NETWORK, (UPDATES.description,))] * 3
    )


def build_digits_net() -> torch.nn.Module:
    """A network with the tensors of the experiment, for images."""
    return FlatLinear()


class FlatLinear(torch.nn.Sequential):
    def __init__(self) -> None:
        super().__init__(torch.nn.Linear(64, 10))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return super().forward(inputs.flatten(1))


def test_names_that_are_neither_parties_nor_external_observers_are_refused() -> None:
    for name in ("late/x", "late", "net"):
        threat = ThreatPlan(observers=(name,), attacks=(MetadataLink(),))
        with pytest.raises(PlanError, match=r"'release' \(the final model\), 'late/ROUND'"):
            refuse_unknown_observers((threat,), (SERVER, client(0)))


def test_reasons_name_what_is_missing() -> None:
    assert "final" not in UPDATES.description
    assert "encrypted" in METADATA.description


TASK = Task((2,), ("cat", "dog"))


def numbered(numbers: list[int]) -> Examples:
    """Each input is its number twice; its label says whether the number is odd."""
    column = torch.tensor(numbers)
    return Examples(column[:, None].repeat(1, 2).float(), column % 2)


AUDITED = Dataset(numbered([0, 1, 2, 3]), numbered([4, 5]), TASK)


OTHER = Dataset(numbered([0, 1, 4, 5, 10, 11, 12, 13, 15]), numbered([20]), TASK)
"""Four of its examples are in the audited data; the others are 10 and 12, and 11, 13, 15."""


def draw(size: AuxiliarySize, seed: int = 0) -> Examples:
    return draw_external_auxiliary(OTHER, AUDITED, size, Seed(seed), "auxiliary_from here")


def numbers(examples: Examples) -> list[int]:
    return sorted(examples.inputs[:, 0].int().tolist())


def test_draws_the_requested_number_per_class_and_no_audited_example():
    examples = draw(AuxiliarySize(per_class=2))
    assert examples.label_counts(2).tolist() == [2, 2]
    assert {10, 12} < set(numbers(examples)) < {10, 11, 12, 13, 15}


def test_draws_a_total_with_the_label_shares_of_the_source():
    # 4 even and 5 odd among its 9; of 2, one each
    assert draw(AuxiliarySize(total=2)).label_counts(2).tolist() == [1, 1]


def test_draws_other_examples_under_another_seed():
    assert {tuple(numbers(draw(AuxiliarySize(per_class=1), n))) for n in range(20)} == {
        (even, odd) if even < odd else (odd, even) for even in (10, 12) for odd in (11, 13, 15)
    }


def test_says_which_label_has_too_few_examples_and_what_to_do():
    with pytest.raises(
        PlanError,
        match="auxiliary_from here: 3 examples with label 'cat' are needed, but the data set "
        "has only 2 that are not in the audited data: ask for fewer",
    ):
        draw(AuxiliarySize(per_class=3))


@pytest.mark.parametrize(
    "task",
    [Task((2,), ("cat", "dog", "cow")), Task((2,), ("cat", "dog"), vocabulary=9)],
    ids=["classes", "vocabulary"],
)
def test_refuses_a_data_set_of_another_form(task: Task):
    inputs = OTHER.train.inputs
    part = Examples(inputs if task.vocabulary is None else inputs.long() % 9,
                    OTHER.train.labels)  # fmt: skip
    other = replace(OTHER, train=part, test=part, task=task)
    with pytest.raises(
        PlanError, match=r"auxiliary_from here: has .*a data set of the same form"
    ):
        draw_external_auxiliary(
            other, AUDITED, AuxiliarySize(per_class=1), Seed(0), "auxiliary_from here"
        )


def test_refuses_a_data_set_of_another_kind():
    rows = torch.tensor([[0.0, 1.0], [1.0, 1.0]])
    several = without_classes(torch.tensor([[7.0, 7.0], [8.0, 8.0]]), rows)
    other = Dataset(several, several, Task((2,), ("cat", "dog"), kind="multi_label"))
    with pytest.raises(PlanError, match=r"2 labels and .* have .* 2 classes"):
        draw_external_auxiliary(other, AUDITED, AuxiliarySize(total=1), Seed(0), "here")
