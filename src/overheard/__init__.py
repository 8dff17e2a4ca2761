"""Measures what a federated-learning run gives away, and which defenses take that away.

A run leaves a *transcript* of *messages*; an observer has a *view* of it; an *attack* turns the
view into a *claim*; a *scorer* holds the claim against the *ground truth*.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from overheard.auditing.run import audit
    from overheard.auditing.simulate import knowledge, simulate
    from overheard.auditing.supplies import Resources
    from overheard.core.seeds import Seed
    from overheard.learning.distillation.methods.distribution_matching import (
        DistributionMatching,
    )
    from overheard.learning.distillation.methods.flip import Flip
    from overheard.plans.built_in import built_in_plan
    from overheard.plans.plan import Plan, read_plan
    from overheard.questions.attribute.attacks.attribute_forest import AttributeForest
    from overheard.questions.attribute.attacks.attribute_mlp import AttributeMlp
    from overheard.questions.attribute.scorer import AttributeScorer
    from overheard.questions.identity.attacks.match_cross_modal import MatchCrossModal
    from overheard.questions.identity.attacks.match_siamese import MatchSiamese
    from overheard.questions.identity.attacks.metadata import Metadata
    from overheard.questions.identity.attacks.profile import Profile
    from overheard.questions.identity.attacks.reidentify_jointly import ReidentifyJointly
    from overheard.questions.identity.attacks.reidentify_knn import ReidentifyKnn
    from overheard.questions.identity.attacks.reidentify_mlp import ReidentifyMlp
    from overheard.questions.identity.attacks.reidentify_svm import ReidentifySvm
    from overheard.questions.identity.attacks.reidentify_wccn import ReidentifyWccn
    from overheard.questions.identity.scorer import IdentityScorer
    from overheard.questions.label_shares.attacks.amortised import Amortised
    from overheard.questions.label_shares.attacks.bias_inversion import BiasInversion
    from overheard.questions.label_shares.attacks.decaf import Decaf
    from overheard.questions.label_shares.attacks.distilled_labels import DistilledLabels
    from overheard.questions.label_shares.attacks.ilrg import Ilrg
    from overheard.questions.label_shares.attacks.ldia import Ldia
    from overheard.questions.label_shares.attacks.llg import Llg
    from overheard.questions.label_shares.attacks.mean_softmax import MeanSoftmax
    from overheard.questions.label_shares.attacks.ppa import Ppa
    from overheard.questions.label_shares.attacks.ramakrishna import Ramakrishna
    from overheard.questions.label_shares.attacks.whispers import Whispers
    from overheard.questions.label_shares.attacks.zlg import Zlg
    from overheard.questions.label_shares.scorer.label_shares import LabelSharesScorer
    from overheard.questions.membership.attacks.lira import Lira
    from overheard.questions.membership.attacks.lira_pooled import LiraPooled
    from overheard.questions.membership.attacks.loss_membership import LossMembership
    from overheard.questions.membership.attacks.shadow_membership import ShadowMembership
    from overheard.questions.membership.scorer import MembershipScorer
    from overheard.questions.same_sender.attacks.link_siamese import LinkSiamese
    from overheard.questions.same_sender.attacks.link_wccn import LinkWccn
    from overheard.questions.same_sender.attacks.metadata_link import MetadataLink
    from overheard.questions.same_sender.scorer import SameSenderScorer
    from overheard.questions.shift.attacks.shift import ShiftTrend
    from overheard.questions.shift.attacks.shift_tracking import ShiftTracking
    from overheard.questions.shift.attacks.validation_shift import ValidationShift
    from overheard.questions.shift.scorer.shift import ShiftScorer
    from overheard.report.write import write_report

__all__ = [
    "Amortised",
    "AttributeForest",
    "AttributeMlp",
    "AttributeScorer",
    "BiasInversion",
    "Decaf",
    "DistilledLabels",
    "DistributionMatching",
    "Flip",
    "IdentityScorer",
    "Ilrg",
    "LabelSharesScorer",
    "Ldia",
    "LinkSiamese",
    "LinkWccn",
    "Lira",
    "LiraPooled",
    "Llg",
    "LossMembership",
    "MatchCrossModal",
    "MatchSiamese",
    "MeanSoftmax",
    "MembershipScorer",
    "Metadata",
    "MetadataLink",
    "Plan",
    "Ppa",
    "Profile",
    "Ramakrishna",
    "ReidentifyJointly",
    "ReidentifyKnn",
    "ReidentifyMlp",
    "ReidentifySvm",
    "ReidentifyWccn",
    "Resources",
    "SameSenderScorer",
    "Seed",
    "ShadowMembership",
    "ShiftScorer",
    "ShiftTracking",
    "ShiftTrend",
    "ValidationShift",
    "Whispers",
    "Zlg",
    "audit",
    "built_in_plan",
    "knowledge",
    "read_plan",
    "simulate",
    "write_report",
]

# Read on first use: a worker process that only trains need not load the report's libraries.
_HOMES = {
    "Amortised": "attacks.amortised",
    "AttributeForest": "attacks.attribute_forest",
    "AttributeMlp": "attacks.attribute_mlp",
    "AttributeScorer": "scoring.attribute",
    "BiasInversion": "attacks.bias_inversion",
    "Decaf": "attacks.decaf",
    "DistilledLabels": "attacks.distilled_labels",
    "DistributionMatching": "learning.distillation.methods.distribution_matching",
    "Flip": "learning.distillation.methods.flip",
    "IdentityScorer": "scoring.identity",
    "Ilrg": "attacks.ilrg",
    "LabelSharesScorer": "scoring.label_shares",
    "Ldia": "attacks.ldia",
    "LinkSiamese": "attacks.link_siamese",
    "LinkWccn": "attacks.link_wccn",
    "Lira": "attacks.lira",
    "LiraPooled": "attacks.lira_pooled",
    "Llg": "attacks.llg",
    "LossMembership": "attacks.loss_membership",
    "MatchCrossModal": "attacks.match_cross_modal",
    "MatchSiamese": "attacks.match_siamese",
    "MeanSoftmax": "attacks.mean_softmax",
    "MembershipScorer": "scoring.membership",
    "Metadata": "attacks.metadata",
    "MetadataLink": "attacks.metadata_link",
    "Plan": "audit.plan",
    "Ppa": "attacks.ppa",
    "Profile": "attacks.profile",
    "Ramakrishna": "attacks.ramakrishna",
    "ReidentifyJointly": "attacks.reidentify_jointly",
    "ReidentifyKnn": "attacks.reidentify_knn",
    "ReidentifyMlp": "attacks.reidentify_mlp",
    "ReidentifySvm": "attacks.reidentify_svm",
    "ReidentifyWccn": "attacks.reidentify_wccn",
    "Resources": "audit.simulate",
    "SameSenderScorer": "scoring.same_sender",
    "Seed": "core.seeds",
    "ShadowMembership": "attacks.shadow_membership",
    "ShiftScorer": "scoring.shift",
    "ShiftTracking": "attacks.shift_tracking",
    "ShiftTrend": "attacks.shift",
    "ValidationShift": "attacks.validation_shift",
    "Whispers": "attacks.whispers",
    "Zlg": "attacks.zlg",
    "audit": "audit.run",
    "built_in_plan": "audit.built_in",
    "knowledge": "audit.simulate",
    "read_plan": "audit.plan",
    "simulate": "audit.simulate",
    "write_report": "report.write",
}


def __getattr__(name: str) -> object:
    """Find a public name in its home."""
    if name not in _HOMES:
        raise AttributeError(f"overheard has no {name!r}; it has {', '.join(__all__)}")
    found = vars(import_module(f"overheard.{_HOMES[name]}"))[name]
    globals()[name] = found
    return found
