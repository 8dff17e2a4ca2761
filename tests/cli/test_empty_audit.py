"""An audit in which nothing was asked is an error that says what to change."""

from dataclasses import replace

import pytest

from overheard.cli.audit_and_report import refuse_empty_audit, unmeasured_attacks
from overheard.consistency.proof import Reason, RecordingProof
from overheard.core.errors import PlanError
from overheard.core.parties import SERVER, client
from overheard.findings.audit import Audit
from overheard.findings.audited_recording import AuditedRecording
from overheard.findings.finding import Cell, ClaimRow, Finding, Refusal

CELL = Cell("no defense", 0, (SERVER,), "decaf", "Decaf()", "label_shares", (0,), label="decaf")
EMPTY = Audit("t", "s", ("a",), (), (), (), "", {})


def refusal(cell: Cell, *missing: str) -> Refusal:
    return Refusal(cell, client(0), missing)


def test_says_that_no_client_is_left_to_ask_about():
    with pytest.raises(PlanError, match=r"no client is left to ask about.*threats\.observers"):
        refuse_empty_audit(EMPTY)


def test_says_that_a_recording_has_no_updates():
    proof = RecordingProof("cannot tell", Reason.NO_UPDATES)
    found = replace(EMPTY, recording=AuditedRecording(proof))
    with pytest.raises(PlanError, match=r"no update of a client.*init --from-recording"):
        refuse_empty_audit(found)


def test_lists_what_each_attack_lacked_once_without_controls():
    others = [replace(CELL, attack=f"a{n}", label=f"a\x1b{n}") for n in range(6)]
    found = replace(
        EMPTY,
        refusals=(
            refusal(CELL, "the recipe", "updates"),
            refusal(replace(CELL, seed=1), "the recipe", "updates"),
            refusal(replace(CELL, is_control=True), "a control"),
            *(refusal(other, "updates") for other in others),
        ),
    )
    with pytest.raises(PlanError) as caught:
        refuse_empty_audit(found)
    first, *reasons, last = str(caught.value).split("\n")
    assert first == "nothing was measured: no attack could be asked. What was missing:"
    assert reasons[0] == "  decaf: the recipe; updates"
    assert reasons[1] == "  a\\x1b0: updates"
    assert reasons[-1] == "  and 2 more"
    assert len(reasons) == 6
    assert "`overheard list attacks`" in last


def test_lists_the_attacks_that_made_no_claim_in_any_arm():
    finding = Finding(replace(CELL, arm="noise"), (client(0),), ClaimRow((1.0,)), ClaimRow())
    other = replace(CELL, attack="mine", label="mine")
    refusals = (refusal(CELL, "updates"), refusal(other, "an attack without errors: mine"))
    found = replace(EMPTY, findings=(finding,), refusals=refusals)
    assert unmeasured_attacks(found) == ("Not measured: mine: an attack without errors: mine",)
