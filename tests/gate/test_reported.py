"""The epsilon entries of a report are read back and judged correctly."""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from overheard.auditing.threat_results import with_verdicts
from overheard.defenses.dp_fedavg import DpFedavg
from overheard.findings.audit import Audit
from overheard.findings.document import FindingsDocument, read_findings
from overheard.findings.finding import Refusal
from overheard.gate.check import check
from overheard.gate.epsilons import epsilon_verdicts
from overheard.gate.markdown import as_markdown
from overheard.gate.policy import EpsilonRule, Policy
from overheard.gate.verdict import Status
from overheard.gate.verdict_formats import as_junit
from overheard.report.exports import as_json
from tests.auditing.epsilon_audits import LOCAL, audit_of, noisy_finding
from tests.gate.documents import JsonObject

GUARANTEED: JsonObject = {"guaranteed_at_most": 3}
ASKED: tuple[JsonObject, ...] = (GUARANTEED, {"proven_at_most": 1}, {"claims_hold": True})


def statuses(now: FindingsDocument, limit: JsonObject, **changes: object) -> list[Status]:
    asked: JsonObject = {"name": "r", "arms": ["noisy"], "observers": ["server"]}
    rule = EpsilonRule.model_validate_json(json.dumps(asked | limit | changes))
    return [verdict.status for verdict in epsilon_verdicts(rule, now)]


STRONG = replace(LOCAL, noise_multiplier=10.0)
FEW = {"members": 100, "outsiders": 200}


def reported(audit: Audit, folder: Path) -> FindingsDocument:
    path = folder / "findings.json"
    path.write_text(as_json(with_verdicts(audit)), encoding="utf-8")
    return read_findings(path)


def refused() -> Audit:
    asked = noisy_finding(10.0, members=2, outsiders=2)
    return audit_of(STRONG, refusals=(Refusal(asked.cell, asked.target, ("a model",)),))


REPORTED: dict[str, tuple[Callable[[], Audit], tuple[Status, Status, Status]]] = {
    # mu = 2 / 10 comes to an epsilon of 0.7; of noise of 0.1 attacks prove more than 2.
    "holds": (
        lambda: audit_of(STRONG, noisy_finding(10.0, **FEW)),
        ("pass", "pass", "pass"),
    ),
    "violated": (
        lambda: audit_of(STRONG, noisy_finding(0.1, **FEW), are_canaries=True),
        ("fail", "fail", "fail"),
    ),
    "contradicted": (
        lambda: audit_of(STRONG, noisy_finding(0.1, **FEW)),
        ("inconclusive", "fail", "inconclusive"),
    ),
    "false": (
        lambda: audit_of(replace(STRONG, stated=0.1)),
        ("fail", "inconclusive", "fail"),
    ),
    "flawed": (
        lambda: audit_of(replace(STRONG, bounded_at=None), noisy_finding(10.0, **FEW)),
        ("fail", "pass", "fail"),
    ),
    "outside guarantee": (
        lambda: audit_of(DpFedavg(noise_multiplier=10.0).mechanism()),
        ("fail", "inconclusive", "fail"),
    ),
    "not tested": (
        lambda: audit_of(STRONG),
        ("pass", "inconclusive", "inconclusive"),
    ),
    "refused": (refused, ("pass", "inconclusive", "inconclusive")),
    "not exchangeable": (
        lambda: audit_of(STRONG, noisy_finding(10.0, **FEW), are_alike=False),
        ("pass", "inconclusive", "inconclusive"),
    ),
}


@pytest.mark.parametrize("verdict", REPORTED)
def test_reads_and_judges_the_epsilon_of_a_report(verdict: str, tmp_path: Path):
    build, expected = REPORTED[verdict]
    now = reported(build(), tmp_path)
    assert [row.verdict for row in now.epsilon or () if row.observers == ("server",)] == [
        verdict
    ]
    assert [status for limit in ASKED for status in statuses(now, limit)] == [*expected]


def test_noise_at_the_server_covers_readers_of_the_models(tmp_path: Path):
    now = reported(audit_of(DpFedavg(noise_multiplier=10.0).mechanism()), tmp_path)
    assert statuses(now, GUARANTEED, observers=[]) == ["pass"]
    assert statuses(now, GUARANTEED) == ["fail"]
    assert statuses(now, GUARANTEED, arms=["none"]) == ["fail"]


def test_a_report_distinguishes_infinite_from_unknown_epsilon(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    weak = replace(LOCAL, noise_multiplier=0.01)
    assert statuses(reported(audit_of(weak), tmp_path), GUARANTEED) == ["fail"]
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    assert statuses(reported(audit_of(weak), tmp_path), GUARANTEED) == ["inconclusive"]
    # A stated epsilon that nobody recomputed guarantees nothing.
    stated = replace(weak, stated=2.0)
    assert statuses(reported(audit_of(stated), tmp_path), GUARANTEED) == ["inconclusive"]
    flawed = replace(weak, bounded_at=None)
    assert statuses(reported(audit_of(flawed), tmp_path), GUARANTEED) == ["fail"]


def test_exports_contain_the_epsilon_verdicts(tmp_path: Path):
    now = reported(audit_of(replace(STRONG, stated=0.1)), tmp_path)
    rule = {"name": "covered", "observers": ["server"], "guaranteed_at_most": 3}
    checked = check(Policy.model_validate_json(json.dumps({"epsilons": [rule]})), now)
    assert checked.summary == "fail: 1 fail, 1 excused"
    page = as_markdown(checked)
    assert (
        r"| **fail** | covered | noisy\; LocalDp\; server | epsilon |  | guaranteed at" in page
    )
    assert (
        "nothing is guaranteed: the claimed epsilon is below the smallest one that can be true"
        in page
    )
    assert 'name="noisy; LocalDp; server; epsilon"' in as_junit(checked)
