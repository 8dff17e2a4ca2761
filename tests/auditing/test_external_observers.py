"""Audits by observers that are no party of the run: claims, or refusals with reasons."""

from pathlib import Path

import pytest
import torch

from overheard.auditing.program import refuse_unknown_observers
from overheard.auditing.run import audit
from overheard.core.errors import PlanError
from overheard.core.needs import METADATA, TRAINED_MODEL, UPDATES
from overheard.core.parties import COHORT, NETWORK, RELEASE, SERVER, client, late_joiner
from overheard.data.partition.candidates import CandidateSettings
from overheard.data.splits.iid import Iid
from overheard.learning.models.own import Own
from overheard.plans.plan import Plan, ThreatPlan
from overheard.questions.label_shares.attacks.bias_inversion import BiasInversion
from overheard.questions.membership.attacks.loss_membership import LossMembership
from overheard.questions.same_sender.attacks.metadata_link import MetadataLink
from overheard.recorders.folder_import import import_recording
from tests.auditing.conftest import HERE
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
    found = audit(membership_plan(reader, single), tmp_path, resources=HERE)
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
    found = audit(replace_tables(TINY, threats=threats), tmp_path, resources=HERE)
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
    found = audit(membership_plan(by_network), tmp_path, resources=HERE)
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
    found = audit(plan, tmp_path, resources=HERE)
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
    found = audit(plan, tmp_path / "out", recording=tmp_path / "run", resources=HERE)
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
