"""A failure in an attack, a scorer, a question or a page costs that part alone."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import overheard
from overheard.auditing.inputs import Resources
from overheard.auditing.run import audit
from overheard.cli.audit_and_report import refuse_empty_audit
from overheard.cli.exits import FAILURE
from overheard.core.failures import DEBUG_VARIABLE
from overheard.core.parties import Party, client
from overheard.defenses.local_dp import LocalDp
from overheard.findings.audit import Audit
from overheard.gate.check import check
from overheard.gate.policy import LeakRule, Policy, VerdictRule
from overheard.plans.plan import ArmPlan
from overheard.questions.label_shares.attacks.bias_inversion import BiasInversion
from overheard.questions.label_shares.attacks.mean_softmax import MeanSoftmax
from overheard.questions.label_shares.pages.report import LabelSharesPages
from overheard.questions.label_shares.question import LabelSharesQuestion
from overheard.questions.label_shares.scorer.label_shares import LabelSharesScorer
from overheard.report.page import render_page
from overheard.report.threat_sentences import headlines
from tests.auditing.plans import NO_DEFENSE, TINY, replace_tables

HERE = Resources(device="cpu", workers=1)
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
    found = audit(PLAN, tmp_path, resources=HERE)
    why = f"the attack bias_inversion failed: {TOLD}"
    assert failed(found) == {("bias_inversion", client(1)): (why,)}
    assert claimed(found, "bias_inversion") == [client(0), client(2)]
    assert len(claimed(found, "mean_softmax")) == 3
    monkeypatch.undo()
    # It was not stored, so the same command tries it again.
    assert not audit(PLAN, tmp_path, resources=HERE).refusals


def test_with_a_failure_nothing_is_said_not_to_leak_and_no_rule_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    noise = ArmPlan(name="noise", defenses=(LocalDp(clip=1.0, noise_multiplier=1e3),))
    plan = replace_tables(PLAN, arms=(NO_DEFENSE, noise), margins={"l1": 1.9})
    whole = audit(plan, tmp_path / "whole", resources=HERE)
    # No guess leaves as much open as this margin.
    assert whole.arm_results[1].threat_results[0].verdict == "nothing to read"
    assert statuses(whole, "noise") == {"pass"}
    break_part(monkeypatch, BiasInversion, "infer")
    found = audit(plan, tmp_path / "failed", resources=HERE)
    (result,) = found.arm_results[1].threat_results
    assert result.verdict == "not enough to judge"
    assert TOLD in result.judgement.withheld
    assert statuses(found, "noise") == {"inconclusive"}
    first = headlines(found.arm_results)[1]
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
    found = audit(PLAN, tmp_path, resources=HERE)
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
    found = audit(PLAN, tmp_path, resources=HERE)
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
    found = audit(PLAN, tmp_path, resources=HERE)
    assert len(found.findings) == 6
    assert found.arm_results[0].threat_results[0].verdict == verdict
    assert statuses(found, "no defense") == {"inconclusive"}
    assert TOLD in headlines(found.arm_results)[0]
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
    found = audit(PLAN, tmp_path, resources=HERE)
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
        audit(PLAN, tmp_path, resources=HERE)


def test_an_audit_in_which_every_attack_failed_is_a_failure_and_no_error_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for attack in (BiasInversion, MeanSoftmax):
        break_part(monkeypatch, attack, "infer")
    found = audit(PLAN, tmp_path, resources=HERE)
    with pytest.raises(RuntimeError, match=r"(?s)nothing was measured.*singular"):
        refuse_empty_audit(found)
    assert FAILURE not in (0, 1, 2)
