"""One line tells what every threat claims after a round, and the epsilon spent so far."""

from dataclasses import replace
from pathlib import Path

import pytest

from overheard.auditing.following.round_attacker import FollowedRound
from overheard.auditing.inputs import Resources
from overheard.auditing.run import audit
from overheard.auditing.threat_results import with_verdicts
from overheard.cli.following import describe_round
from overheard.core.accounting.accountant import AccountedMechanism, RecomputedEpsilon
from overheard.core.defense import RunParameters
from overheard.core.mechanism import Mechanism
from overheard.findings.audit import Audit
from overheard.findings.finding import ArmDefense, Refusal
from tests.auditing.plans import COHORT_THREAT, TINY, replace_tables

NOISE = Mechanism(1.0, 1.0, 1e-5, "server", "server")


@pytest.fixture(scope="module")
def found(recording: Path, tmp_path_factory: pytest.TempPathFactory) -> Audit:
    """The audit of a recording with ground truth: threats about clients and the cohort."""
    threats = (TINY.threats[0].model_copy(update={"by_round": False}), COHORT_THREAT)
    plan = replace_tables(TINY, threats=threats)
    out = tmp_path_factory.mktemp("round-lines") / "audit"
    return audit(plan, out, recording=recording, resources=Resources(device="cpu", workers=1))


def line(audit: Audit) -> str:
    return describe_round(FollowedRound(4, 5, 1.25, with_verdicts(audit)))


def with_defense(audit: Audit, mechanism: Mechanism, epsilon: float | None) -> Audit:
    recomputed = None if epsilon is None else RecomputedEpsilon(epsilon, epsilon, None, 1.0)
    accounted = AccountedMechanism(mechanism, RunParameters(5, 1.0), recomputed)
    defense = ArmDefense("Noisy(clip=1.0)", "server", "the server", "as recorded", accounted)
    return replace(audit, arms=(replace(audit.arms[0], defenses=(defense,)),))


def test_states_the_score_and_the_guess_of_each_threat(found: Audit) -> None:
    said = line(found)
    assert said.startswith(
        "round 4, 1.2 s after its end: the server, label shares of 3 clients: "
    )
    assert "the server, label shares of the cohort: " in said
    assert said.count("guessing: ") == 2
    assert "epsilon" not in said
    assert "\n" not in said


def test_unchecked_claims_have_an_example_and_no_score(found: Audit) -> None:
    unchecked = tuple(
        replace(one, true=None, scores=(), guesses={"uniform": (0.1,) * 10})
        for one in found.findings
    )
    said = line(replace(found, findings=unchecked))
    assert "label shares of 3 clients: claimed, not checked (for example, the attack" in said
    assert " % of the data of client" in said  # with a plain space, for a terminal
    assert "guessing" not in said


def test_says_what_attacks_lacked_that_could_not_run(found: Audit) -> None:
    first = found.findings[0]
    refusal = Refusal(first.cell, first.target, ("a reason that is long: " + 300 * "x",))
    said = line(replace(found, findings=(), refusals=(refusal,)))
    assert "the server, label shares: no attack could run (missing: a reason" in said
    assert said.endswith("x…)")


def test_states_the_epsilon_spent_so_far_beside_the_promise(found: Audit) -> None:
    assert line(with_defense(found, NOISE, 6.571)).endswith("; Noisy: epsilon 6.58 spent")
    promised = replace(NOISE, stated=8.0)
    assert line(with_defense(found, promised, 6.571)).endswith("spent (8 promised)")
    each = replace(promised, stated_for="round")
    assert line(with_defense(found, each, 6.571)).endswith("spent (8 a round promised)")


def test_a_mechanism_without_guarantee_spends_nothing(found: Audit) -> None:
    said = line(with_defense(found, replace(NOISE, bounded_at=None), 6.5))
    assert "; Noisy: no guarantee, its noise suits updates" in said
    assert "spent" not in said


def test_says_what_to_install_where_epsilon_cannot_be_computed(found: Audit) -> None:
    assert "computing epsilon requires dp-accounting" in line(with_defense(found, NOISE, None))
