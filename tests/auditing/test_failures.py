"""A failure of a part costs only what that part would say; computing runs on the device."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import fields
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import pytest

import overheard
from overheard.algorithms.adaptive import FedAdam
from overheard.algorithms.fed_buff import FedBuff
from overheard.algorithms.fed_nova import FedNova
from overheard.algorithms.scaffold import Scaffold
from overheard.auditing.inputs import Resources
from overheard.auditing.run import audit
from overheard.cli.audit_and_report import refuse_empty_audit
from overheard.cli.exits import FAILURE
from overheard.core.attack import Attack
from overheard.core.failures import DEBUG_VARIABLE
from overheard.core.parties import Party, client
from overheard.data.partition.candidates import CandidateSettings
from overheard.defenses.local_dp import LocalDp
from overheard.findings.audit import Audit
from overheard.gate.check import check
from overheard.gate.policy import LeakRule, Policy, VerdictRule
from overheard.learning.devices import choice
from overheard.learning.devices.choice import DeviceName, Host, forget_parts
from overheard.learning.devices.machine import USUAL_CORE, GpuCosts, Machine
from overheard.learning.distillation.methods.distribution_matching import (
    DistributionMatching,
)
from overheard.learning.models.mlp import Mlp
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan
from overheard.plans.virtual_plan import VirtualPlan
from overheard.questions.label_shares.attacks.amortised import Amortised
from overheard.questions.label_shares.attacks.bias_inversion import BiasInversion
from overheard.questions.label_shares.attacks.ldia import Ldia
from overheard.questions.label_shares.attacks.mean_softmax import MeanSoftmax
from overheard.questions.label_shares.attacks.whispers import Whispers
from overheard.questions.label_shares.pages.report import LabelSharesPages
from overheard.questions.label_shares.question import LabelSharesQuestion
from overheard.questions.label_shares.scorer.label_shares import LabelSharesScorer
from overheard.questions.membership.attacks.fed_mia import FedMia
from overheard.questions.membership.attacks.gradient_membership import GradientMembership
from overheard.questions.membership.attacks.lira import Lira
from overheard.questions.membership.attacks.shadow_membership import ShadowMembership
from overheard.report.page import render_page
from overheard.report.threat_sentences import threat_sentences
from tests.auditing.conftest import audit_here
from tests.auditing.plans import DATA, NO_DEFENSE, TINY, TRAINING, replace_tables
from tests.pretended_device import pretended_device

TOLD = "ArithmeticError: the matrix is singular"


PLAN = replace_tables(
    TINY,
    arms=(NO_DEFENSE,),
    threats=(TINY.threats[0].model_copy(update={"by_round": False}),),
)


@pytest.fixture(autouse=True)
def _failures_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DEBUG_VARIABLE)


def fails_on(
    original: Callable[..., Any], is_reached: Callable[[tuple[Any, ...]], bool]
) -> Callable[..., Any]:
    """The function, which fails where it is reached as if a line of Overheard did."""
    names: dict[str, Any] = {"original": original, "is_reached": is_reached}
    # An error in a file of a test would count as one in code of the user.
    code = compile(
        "def fail(*given, **named):\n"
        "    if is_reached(given):\n"
        "        raise ArithmeticError('the matrix is singular')\n"
        "    return original(*given, **named)\n",
        str(Path(overheard.__file__).with_name("fail.py")),
        "exec",
    )
    exec(code, names)
    function: Callable[..., Any] = names["fail"]
    return function


def always(given: tuple[Any, ...]) -> bool:
    return True


def break_part(
    monkeypatch: pytest.MonkeyPatch,
    owner: type,
    name: str,
    is_reached: Callable[[tuple[Any, ...]], bool] = always,
) -> None:
    monkeypatch.setattr(owner, name, fails_on(getattr(owner, name), is_reached))


def failed(found: Audit) -> Mapping[tuple[str, Party], tuple[str, ...]]:
    return {
        (one.cell.part, one.target): one.missing
        for one in found.refusals
        if one.kind == "failed"
    }


def claimed(found: Audit, attack: str) -> Sequence[Party]:
    return [one.target for one in found.findings if one.cell.part == attack]


def statuses(found: Audit, arm: str) -> set[str]:
    """Return the statuses of all rules, under a policy that lets everything else pass."""
    limit = LeakRule(
        name="limit",
        question="label_shares",
        arms=(arm,),
        score="l1",
        no_better_than=0.0001,
        may_be_refused=("bias_inversion",),
    )
    verdict = VerdictRule(name="verdict", arms=(arm,))
    policy = Policy(straddles="pass", verdicts=(verdict,), leaks=(limit,))
    return {one.status for one in check(policy, found).verdicts}


def test_an_attack_that_fails_on_one_target_keeps_its_claims_about_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    break_part(monkeypatch, BiasInversion, "infer", lambda given: client(1) in given[2])
    found = audit_here(PLAN, tmp_path)
    why = f"the attack bias_inversion failed: {TOLD}"
    assert failed(found) == {("bias_inversion", client(1)): (why,)}
    assert claimed(found, "bias_inversion") == [client(0), client(2)]
    assert len(claimed(found, "mean_softmax")) == 3
    monkeypatch.undo()
    # It was not stored, so the same command tries it again.
    assert not audit_here(PLAN, tmp_path).refusals


def test_with_a_failure_nothing_is_said_not_to_leak_and_no_rule_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    noise = ArmPlan(name="noise", defenses=(LocalDp(clip=1.0, noise_multiplier=1e3),))
    plan = replace_tables(PLAN, arms=(NO_DEFENSE, noise), margins={"l1": 1.9})
    whole = audit_here(plan, tmp_path / "whole")
    # No guess leaves as much open as this margin.
    assert whole.arm_results[1].threat_results[0].verdict == "nothing to read"
    assert statuses(whole, "noise") == {"pass"}
    break_part(monkeypatch, BiasInversion, "infer")
    found = audit_here(plan, tmp_path / "failed")
    (result,) = found.arm_results[1].threat_results
    assert result.verdict == "not enough to judge"
    assert TOLD in result.judgement.withheld
    assert statuses(found, "noise") == {"inconclusive"}
    first = threat_sentences(result)[0]
    assert "cannot be judged" in first
    assert TOLD in first
    page = render_page(found)
    assert "Not judged: the attack bias_inversion failed" in page
    assert "Overheard itself failed to make or score 6 claims (bias_inversion" in page
    assert "please report it" in page


def test_a_scorer_that_fails_on_one_target_keeps_the_scores_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    break_part(
        monkeypatch, LabelSharesScorer, "true_claim", lambda given: given[2] == client(2)
    )
    found = audit_here(PLAN, tmp_path)
    why = (f"the scorer label_shares failed: {TOLD}",)
    assert failed(found) == {
        ("bias_inversion", client(2)): why,
        ("mean_softmax", client(2)): why,
    }
    assert claimed(found, "mean_softmax") == [client(0), client(1)]


def test_guesses_that_fail_cost_the_claim_about_their_target_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    calls = iter(range(100))
    break_part(
        monkeypatch, LabelSharesScorer, "uninformed_guesses", lambda given: next(calls) == 0
    )
    found = audit_here(PLAN, tmp_path)
    why = (f"a guess of label_shares failed: {TOLD}",)
    assert failed(found) == {("bias_inversion", client(0)): why}


@pytest.mark.parametrize(
    ("method", "verdict"),
    [("re_paired_fits", "not enough to judge"), ("summary_rows", "unmeasured")],
)
def test_a_question_that_fails_has_no_verdict_of_no_leak(
    method: str, verdict: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    break_part(monkeypatch, LabelSharesQuestion, method)
    found = audit_here(PLAN, tmp_path)
    assert len(found.findings) == 6
    assert found.arm_results[0].threat_results[0].verdict == verdict
    assert statuses(found, "no defense") == {"inconclusive"}
    assert TOLD in threat_sentences(found.arm_results[0].threat_results[0])[0]
    assert TOLD in render_page(found)


@pytest.mark.parametrize(
    ("method", "named"),
    [
        ("sections", "the section on label shares"),
        ("terms", "terms"),
        ("headline_statement", "what leaks, in sentences"),
    ],
)
def test_a_part_of_the_page_that_fails_leaves_the_rest(
    method: str, named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    found = audit_here(PLAN, tmp_path)
    break_part(monkeypatch, LabelSharesPages, method)
    page = render_page(found)
    assert f"Not on this page, since Overheard failed: {named}. It failed: {TOLD}." in page
    assert "Every score, on its own scale" in page
    assert "please report it" in page


def test_failures_are_raised_where_they_are_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(DEBUG_VARIABLE, "1")
    break_part(monkeypatch, MeanSoftmax, "infer")
    with pytest.raises(ArithmeticError):
        audit_here(PLAN, tmp_path)


def test_an_audit_in_which_every_attack_failed_is_a_failure_and_no_error_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for attack in (BiasInversion, MeanSoftmax):
        break_part(monkeypatch, attack, "infer")
    found = audit_here(PLAN, tmp_path)
    with pytest.raises(RuntimeError, match=r"(?s)nothing was measured.*singular"):
        refuse_empty_audit(found)
    assert FAILURE not in (0, 1, 2)


MEMBERSHIP = (
    FedMia(),
    GradientMembership(models=8),
    Lira(models=8),
    ShadowMembership(models=8),
)
"""Attacks that compute on the device beside the training of shadow models."""


LABEL_SHARES = (
    Amortised(most_rounds=1, steps=2),
    Ldia(epochs=1),
    Whispers(epochs=1),
)
"""Attacks that compute on the device beside the training of virtual clients."""


ALGORITHMS = (FedAdam(), FedBuff(buffer=2), FedNova(), Scaffold())


def audit_on_device(plan: Plan, folder: Path, *, is_chosen: bool = False) -> Audit:
    """Audit on the device: all that can run there, or what is chosen for it."""
    free = Machine(1, USUAL_CORE, GpuCosts(*[0.0] * len(fields(GpuCosts))))
    with pretended_device() as device, ExitStack() as stack:
        name = cast(DeviceName, "auto" if is_chosen else str(device))
        host = Host(1, is_measured=True, machine=free)
        changes = {"GPU": str(device), "SMALL": 0.0, "_HOST": [host]}
        for changed, value in changes.items():
            stack.enter_context(patch.object(choice, changed, value))
        forget_parts()
        return audit(plan, folder, resources=Resources(device=name, workers=1))


@pytest.mark.slow
@pytest.mark.parametrize("is_chosen", [False, True], ids=["named", "chosen"])
@pytest.mark.parametrize(
    ("attacks", "part"),
    [(MEMBERSHIP, "shadow models"), (LABEL_SHARES, "virtual clients")],
    ids=["membership", "shares"],
)
def test_attacks_run_on_the_device_of_the_audit(
    attacks: tuple[Attack, ...], part: str, is_chosen: bool, tmp_path: Path
) -> None:
    plan = replace_tables(
        TINY,
        data=DATA.model_copy(update={"candidates": CandidateSettings(4, 20)}),
        training=TRAINING.model_copy(update={"model": Mlp(hidden=(8,)), "epochs": 1}),
        threats=(ThreatPlan(attacks=attacks, virtual=VirtualPlan(clients=8), by_round=False),),
    )
    finished = audit_on_device(plan, tmp_path / "audit", is_chosen=is_chosen)
    assert not finished.refusals
    if is_chosen:
        assert choice._ON_GPU.keys() >= {"clients of the federation", part}
    assert {one.cell.part for one in finished.findings} >= {one.name for one in attacks}


@pytest.mark.slow
def test_algorithms_and_distillation_run_on_the_device_of_the_audit(
    tmp_path: Path,
) -> None:
    arms = [ArmPlan(name=one.name, algorithm=one) for one in ALGORITHMS]
    arms += [ArmPlan(name="matching", distillation=DistributionMatching(samples=2))]
    threat = ThreatPlan(attacks=(MeanSoftmax(),), by_round=False)
    training = TRAINING.model_copy(update={"epochs": 1})
    plan = replace_tables(TINY, training=training, arms=tuple(arms), threats=(threat,))
    finished = audit_on_device(plan, tmp_path / "audit")
    assert {one.arm for one in finished.arms} >= {one.name for one in arms}
