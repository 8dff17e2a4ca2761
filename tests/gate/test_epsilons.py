"""A rule on epsilon fails for broken claims and never passes for missing rows."""

import json
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overheard.findings.document import FindingsDocument
from overheard.findings.privacy.epsilon_rows import EpsilonVerdict
from overheard.gate.epsilons import epsilon_verdicts
from overheard.gate.policy import EpsilonRule
from overheard.gate.verdict import RuleVerdict, Status, overall_status
from tests.gate.documents import JsonObject, epsilon_row, findings, run

GUARANTEED: JsonObject = {"guaranteed_at_most": 3}
PROVEN: JsonObject = {"proven_at_most": 1}
CLAIMS: JsonObject = {"claims_hold": True}
ASKED = (GUARANTEED, PROVEN, CLAIMS)


def rule(limit: JsonObject, **changes: object) -> EpsilonRule:
    return EpsilonRule.model_validate_json(json.dumps({"name": "r"} | limit | changes))


def told(*lines: JsonObject, arms: tuple[str, ...] = ("noisy",)) -> FindingsDocument:
    return findings(epsilon=list(lines), arms=[run(arm) for arm in arms])


def statuses(asked: EpsilonRule, now: FindingsDocument) -> list[Status]:
    return [verdict.status for verdict in epsilon_verdicts(asked, now)]


def only(asked: EpsilonRule, now: FindingsDocument) -> RuleVerdict:
    (verdict,) = epsilon_verdicts(asked, now)
    return verdict


BY_VERDICT: dict[EpsilonVerdict, tuple[Status, Status, Status]] = {
    # Guaranteed: 2 or nothing. Proven: 0.5, or 2.5 if the claim is violated or contradicted.
    "holds": ("pass", "pass", "pass"),
    "violated": ("fail", "fail", "fail"),
    "contradicted": ("inconclusive", "fail", "inconclusive"),
    "estimate": ("inconclusive", "fail", "inconclusive"),
    "false": ("fail", "pass", "fail"),
    "not confirmed": ("pass", "pass", "inconclusive"),
    "flawed": ("fail", "pass", "fail"),
    "outside guarantee": ("fail", "pass", "fail"),
    "not tested": ("pass", "inconclusive", "inconclusive"),
    "refused": ("pass", "inconclusive", "inconclusive"),
    "not exchangeable": ("pass", "inconclusive", "inconclusive"),
    "unchecked": ("pass", "inconclusive", "inconclusive"),
    "unaccounted": ("inconclusive", "pass", "inconclusive"),
}


@pytest.mark.parametrize("verdict", get_args(EpsilonVerdict))
def test_maps_each_epsilon_verdict_to_a_status(verdict: EpsilonVerdict):
    now = told(epsilon_row(verdict))
    assert tuple(only(rule(limit), now).status for limit in ASKED) == BY_VERDICT[verdict]


def test_a_guarantee_is_limited_and_reported_with_unit_and_delta():
    now = told(epsilon_row("not tested"))
    exact, less = rule({"guaranteed_at_most": 2.0}), rule({"guaranteed_at_most": 1.9})
    assert only(exact, now).status == "pass"
    verdict = only(less, now)
    assert (verdict.status, verdict.figure_text) == ("fail", "2")
    assert (verdict.score, verdict.limit) == ("epsilon", "guaranteed at most 1.9")
    assert verdict.subject == "noisy; LocalDp; server"
    assert verdict.why == "for all data of a client, at delta 1e-05"


def test_infinite_epsilon_fails_and_unknown_epsilon_is_inconclusive():
    enormous = rule({"guaranteed_at_most": 1e300})
    verdict = only(enormous, told(epsilon_row("not tested", ceiling=None)))
    assert (verdict.status, verdict.figure_text) == ("fail", "")
    assert verdict.why == "nothing is guaranteed: its settings give no finite epsilon"
    unknown = only(enormous, told(epsilon_row("unaccounted")))
    assert unknown.status == "inconclusive"
    assert "pip install '.[dp]'" in unknown.why


def test_a_proven_epsilon_is_limited_and_reported_with_its_attack():
    now = told(epsilon_row("holds"))
    assert only(rule({"proven_at_most": 0.5}), now).status == "pass"
    verdict = only(rule({"proven_at_most": 0.4}), now)
    assert (verdict.status, verdict.figure_text) == ("fail", "0.5")
    assert (verdict.limit, verdict.why) == ("proven at most 0.4", "by peek")


@pytest.mark.parametrize("verdict", ["flawed", "outside guarantee", "false", "unaccounted"])
def test_an_unmeasured_epsilon_is_inconclusive(verdict: str):
    said = only(rule(PROVEN), told(epsilon_row(verdict, measured=None)))
    assert said.status == "inconclusive"
    assert said.why.startswith("no membership attack by these observers")


def test_says_if_a_claim_holds_but_is_too_large_to_protect():
    assert only(rule(CLAIMS), told(epsilon_row("holds"))).why == "compared with 2"
    idle = only(rule(CLAIMS), told(epsilon_row("holds", ceiling=None)))
    assert (idle.status, idle.why) == (
        "pass",
        "compared with infinity, which is too large to protect",
    )
    assert only(rule(CLAIMS), told(epsilon_row("flawed"))).why.endswith(
        "any observer: it adds no noise"
    )


def test_says_why_a_claim_is_not_confirmed_and_of_how_many_rounds_it_is():
    few = {"rounds": 300, "recorded_rounds": 3}
    unsure = epsilon_row("not confirmed", claim="not confirmed", doubt="no sampling is stated")
    verdict = only(rule(CLAIMS), told(unsure | few))
    assert verdict.status == "inconclusive"
    assert verdict.why.endswith("may be true: no sampling is stated; 3 of 300 rounds recorded")
    limited = only(rule({"guaranteed_at_most": 1.0}), told(epsilon_row("holds") | few))
    assert (limited.status, limited.why) == (
        "fail",
        "for all data of a client, at delta 1e-05; 3 of 300 rounds recorded",
    )


def test_checks_all_rows_that_match_the_rule():
    now = told(
        epsilon_row(),
        epsilon_row("outside guarantee", defense="DpFedavg()"),
        epsilon_row(defense="DpFedavg()", observers=[]),
        epsilon_row("violated", observers=["server", "client/0"]),
        epsilon_row("false", arm="more"),
        arms=("noisy", "more"),
    )
    assert statuses(rule(CLAIMS), now) == ["pass", "fail", "fail", "fail"]
    noisy: JsonObject = {"arms": ["noisy"]}
    assert statuses(rule(CLAIMS, **noisy), now) == ["pass", "fail", "fail"]
    local = rule(CLAIMS, mechanisms=["LocalDp"], observers=["server"], **noisy)
    assert statuses(local, now) == ["pass"]
    pooled = rule(CLAIMS, mechanisms=["LocalDp"], observers=["client/0", "server"], **noisy)
    assert statuses(pooled, now) == ["fail"]
    models = rule(CLAIMS, mechanisms=["DpFedavg"], observers=[], **noisy)
    verdict = only(models, now)
    assert verdict.status == "pass"
    assert verdict.subject == "noisy; DpFedavg; readers of the global models only"


def test_readers_of_the_models_only_must_be_named():
    now = told(epsilon_row(), epsilon_row("not tested", observers=[]))
    assert statuses(rule(CLAIMS), now) == ["pass"]
    assert statuses(rule(CLAIMS, observers=[]), now) == ["inconclusive"]
    assert statuses(rule(GUARANTEED, observers=[]), now) == ["pass"]
    verdict = only(rule(GUARANTEED), told(epsilon_row(observers=[])))
    assert verdict.status == "inconclusive"
    assert verdict.why == (
        "no such observers; observers of this mechanism: readers of the global models only"
    )


def test_an_unnamed_arm_without_a_mechanism_is_excused():
    defended, bare = epsilon_verdicts(rule(CLAIMS), told(epsilon_row(), arms=("noisy", "bare")))
    assert (defended.status, bare.status, bare.subject) == ("pass", "excused", "bare")
    other = told(epsilon_row(), epsilon_row(arm="b", defense="DpFedavg()"), arms=("noisy", "b"))
    assert statuses(rule(CLAIMS, mechanisms=["LocalDp"]), other) == ["pass", "excused"]
    either = rule(CLAIMS, mechanisms=["LocalDp", "DpFedavg"])
    assert statuses(either, other) == ["pass", "pass"]


@pytest.mark.parametrize("limit", ASKED)
def test_nothing_passes_without_a_mechanism(limit: JsonObject):
    assert statuses(rule(limit), told(arms=("bare",))) == ["excused", "inconclusive"]
    assert statuses(rule(limit), told(arms=())) == ["inconclusive"]
    misspelt = rule(limit, mechanisms=["local_dp"])
    *_, verdict = epsilon_verdicts(misspelt, told(epsilon_row()))
    assert verdict.status == "inconclusive"
    assert verdict.why == "no such mechanism; mechanisms: LocalDp"


@pytest.mark.parametrize(
    ("limit", "status"),
    [(GUARANTEED, "fail"), (PROVEN, "inconclusive"), (CLAIMS, "inconclusive")],
)
def test_a_named_arm_without_a_mechanism_does_not_pass(limit: JsonObject, status: Status):
    now = told(epsilon_row(), arms=("noisy", "bare"))
    verdict = only(rule(limit, arms=["bare"]), now)
    assert (verdict.subject, verdict.status) == ("bare", status)
    assert "the arm has no mechanism" in verdict.why


@pytest.mark.parametrize("limit", ASKED)
def test_names_that_do_not_exist_are_inconclusive(limit: JsonObject):
    now = told(
        epsilon_row(), epsilon_row(arm="more", defense="DpFedavg()"), arms=("noisy", "more")
    )
    *_, arm = epsilon_verdicts(rule(limit, arms=["noisy", "nosie"]), now)
    assert (arm.status, arm.why) == ("inconclusive", "no such arm; arms: noisy; more")
    both = rule(limit, arms=["noisy", "more"], mechanisms=["LocalDp"])
    first, mechanism = epsilon_verdicts(both, now)
    assert (first.status, mechanism.status) == ("pass", "inconclusive")
    assert mechanism.subject == "more; LocalDp"
    assert mechanism.why == "no such mechanism; mechanisms of this arm: DpFedavg"
    elsewhere = epsilon_verdicts(rule(limit, observers=["client/7"]), now)
    assert [verdict.status for verdict in elsewhere] == ["inconclusive"] * 2
    assert elsewhere[0].why == "no such observers; observers of this mechanism: server"


LINES = st.lists(
    st.builds(
        epsilon_row,
        st.sampled_from(get_args(EpsilonVerdict)),
        arm=st.sampled_from(["noisy", "more"]),
        defense=st.sampled_from(["LocalDp(1)", "DpFedavg(1)"]),
        observers=st.sampled_from([[], ["server"], ["client/0", "server"]]),
    ),
    unique_by=lambda one: (str(one["arm"]), str(one["defense"]), str(one["observers"])),
)
RULES = st.fixed_dictionaries(
    {},
    optional={
        "arms": st.lists(st.sampled_from(["noisy", "more", "bare", "nosie"]), min_size=1),
        "mechanisms": st.lists(st.sampled_from(["LocalDp", "DpFedavg", "x"]), min_size=1),
        "observers": st.sampled_from([[], ["server"], ["client/1"]]),
    },
)


@pytest.mark.slow
@given(LINES, RULES, st.sampled_from(ASKED))
def test_a_rule_passes_only_with_rows_that_keep_it(
    lines: list[JsonObject], chosen: JsonObject, limit: JsonObject
):
    asked = rule(limit, **chosen)
    verdicts = epsilon_verdicts(asked, told(*lines, arms=("noisy", "more", "bare")))
    assert verdicts
    named = [one | {"observers": ["server"]} for one in lines]
    keep = [one for one in named if statuses(rule(limit), told(one, arms=())) == ["pass"]]
    assert sum(verdict.status == "pass" for verdict in verdicts) <= len(keep)
    if overall_status(verdicts) == "pass":
        assert keep
        assert set(asked.arms or ()) <= {str(one["arm"]) for one in keep}


@given(LINES, st.floats(0, 4), st.floats(0, 4), st.sampled_from(["guaranteed", "proven"]))
def test_a_tighter_rule_never_lets_more_pass(
    lines: list[JsonObject], limit: float, by: float, figure: str
):
    order: list[Status] = ["fail", "inconclusive", "excused", "pass"]
    now = told(*lines)
    loose = statuses(rule({f"{figure}_at_most": limit + by}), now)
    tight = statuses(rule({f"{figure}_at_most": limit}), now)
    for one, other in zip(tight, loose, strict=True):
        assert order.index(one) <= order.index(other)


FAULT: JsonObject = {
    "arm": "noisy",
    "id": "noise-repeats",
    "severity": "critical",
    "title": "the same noise in several rounds",
    "what": "",
    "where": "",
    "evidence": "",
    "mend": "",
    "reference": "",
}


def test_a_critical_fault_of_the_doctor_fails_a_rule_on_claims_and_no_other():
    now = told(epsilon_row("holds"), arms=("noisy",))
    faulty = FindingsDocument.model_validate_json(
        json.dumps(json.loads(now.to_json()) | {"doctor": [FAULT]})
    )
    assert [only(rule(limit), faulty).status for limit in ASKED] == ["pass", "pass", "fail"]
    assert "noise-repeats" in only(rule(CLAIMS), faulty).why
    milder = FindingsDocument.model_validate_json(
        json.dumps(json.loads(now.to_json()) | {"doctor": [FAULT | {"severity": "negligible"}]})
    )
    assert only(rule(CLAIMS), milder).status == "pass"
