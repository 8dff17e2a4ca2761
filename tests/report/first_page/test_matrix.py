"""The matrix states verdict, effect, guess and surety of each question, observer and arm."""

from dataclasses import replace

from overheard.auditing.threat_results import with_verdicts
from overheard.core.parties import SERVER, client
from overheard.findings.audit import Audit
from overheard.findings.finding import Cell, Refusal
from overheard.report.first_page.matrix import (
    ARMS_IN_A_PART,
    UNDEFENDED,
    UNKNOWN_DEFENSES,
    describe_defenses,
    make_matrices,
)
from tests.runs.audits import FITS_BEST, shares_finding


def plain(text: str) -> str:
    return text.replace("\u00a0", " ")


def test_a_cell_states_effect_guess_and_surety(small: Audit) -> None:
    (matrix,) = make_matrices(small.arm_results)
    assert [arm.name for arm in matrix.arms] == ["none", "noise"]
    (row,) = matrix.rows
    assert (row.observers, row.about) == ("The server", "each client")
    leak, hidden = row.cells
    assert (leak.badge, leak.style) == ("Leaks, size unsure", "leaks")
    # l1 / 2: 0.10 and 0.02 against 0.5 and 0.3.
    assert plain(leak.effect) == "Wrong about the class of 6.0 % of the data"
    assert plain(leak.guess) == "Guessing: wrong about 40 %"
    assert plain(leak.surety).startswith("Gain over guessing 34 % (95 % sure: ")
    assert plain(leak.surety).endswith("By chance: 5 in 1,000.")
    assert (hidden.badge, hidden.style) == ("No leak above the margin", "no-leak-above-margin")
    assert plain(hidden.surety).endswith("Below the margin of 5.0 %.")


def test_who_was_not_asked_in_an_arm_has_no_cell(small: Audit) -> None:
    other = shares_finding(
        "noise", client(1), (0.2, 0.8), (0.2, 0.8), observers=(client(0),), fits=FITS_BEST
    )
    audit = replace(small, findings=(*small.findings, other))
    (matrix,) = make_matrices(with_verdicts(audit).arm_results)
    assert [row.observers for row in matrix.rows] == ["The server", "Client 0"]
    assert matrix.rows[1].cells[0] is None
    assert matrix.rows[1].cells[1] is not None


def test_a_refusal_names_what_is_missing_and_not_every_target(small: Audit) -> None:
    cell = Cell("none", 0, (SERVER,), "decaf", "Decaf()", "label_shares", (0, 1))
    refused = tuple(Refusal(cell, client(k), (f"update {k}",)) for k in range(9))
    audit = replace(small, arms=small.arms[:1], findings=(), refusals=refused)
    (matrix,) = make_matrices(with_verdicts(audit).arm_results)
    (found,) = matrix.rows[0].cells
    assert found.effect == found.guess == ""
    assert found.surety == (
        "No attack could run. Missing: update 0 and update 1 and update 2, and 6 more."
    )


def test_many_arms_make_several_parts(small: Audit) -> None:
    arms = tuple(replace(small.arms[0], arm=f"arm {k}") for k in range(ARMS_IN_A_PART + 1))
    first = small.findings[0]
    findings = tuple(
        replace(first, cell=replace(first.cell, arm=f"arm {k}"))
        for k in range(ARMS_IN_A_PART + 1)
    )
    parts = make_matrices(
        with_verdicts(replace(small, arms=arms, findings=findings)).arm_results
    )
    assert [len(part.arms) for part in parts] == [ARMS_IN_A_PART, 1]
    assert all(len(row.cells) == len(part.arms) for part in parts for row in part.rows)


def test_no_defenses_are_stated_only_if_that_is_known(small: Audit) -> None:
    (bare, _) = small.arm_results
    assert describe_defenses(bare) == UNDEFENDED
    untold = replace(bare, runs=(replace(bare.runs[0], are_defenses_known=False),))
    assert describe_defenses(untold) == UNKNOWN_DEFENSES


def test_unchecked_claims_are_not_called_right_or_wrong(small: Audit) -> None:
    claimed = shares_finding("none", client(0), (0.5, 0.5), (0.9, 0.1), reach=0.1)
    unchecked = replace(claimed, true=None, scores=(), guesses={"uniform": (0.5, 0.5)})
    arm = replace(small.arms[0], has_truth=False)
    audit = replace(small, arms=(arm,), findings=(unchecked,))
    (found,) = make_matrices(with_verdicts(audit).arm_results)[0].rows[0].cells
    assert found.badge == "Claimed, not checked"
    told = plain(found.surety)
    assert told == "Attacks state something. Nobody could check whether it is right."
