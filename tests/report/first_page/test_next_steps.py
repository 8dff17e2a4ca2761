"""What to do next follows from the arms of the audit alone."""

from dataclasses import replace

from overheard.auditing.threat_results import with_verdicts
from overheard.core.parties import SERVER, client
from overheard.findings.audit import Audit
from overheard.findings.finding import ArmDefense, Cell, Refusal
from overheard.report.first_page.next_steps import NAME_DEFENSES, next_steps
from tests.runs.audits import FITS_BEST, FITS_LIKE_ANY, shares_finding, two_findings


def steps(audit: Audit) -> list[str]:
    return [text.replace("\u00a0", " ") for text in next_steps(with_verdicts(audit))]


def test_a_defense_that_stops_the_leak_is_named_with_its_cost(small: Audit) -> None:
    assert steps(small)[0] == (
        "Against the leak “The server, about each client: label shares”: have engineers use "
        "“noise” (the model is 89.0 % accurate, 91.0 % without): the leak is shown to stop."
    )


def test_a_defense_that_only_keeps_attacks_from_running_is_told_apart(small: Audit) -> None:
    cell = Cell("noise", 0, (SERVER,), "decaf", "Decaf()", "label_shares", (0, 1))
    refused = tuple(Refusal(cell, client(k), ("an update",)) for k in (0, 1))
    (first, *_) = steps(replace(small, findings=small.findings[:2], refusals=refused))
    assert "no attack of this audit on each client can run then, which is no proof" in first
    assert "shown to stop" not in first
    assert "have engineers use “noise”" in first


def test_untried_defenses_are_proposed_only_if_something_leaks(small: Audit) -> None:
    tried = ArmDefense("SecureAggregation()", "protocol", "nobody", "none")
    arms = (small.arms[0], replace(small.arms[1], defenses=(tried,)))
    *_, last = steps(replace(small, arms=arms))
    assert last.startswith("Have engineers add a defense that was not tried, and repeat")
    assert "first secure_aggregation" in steps(small)[-1]
    assert "overheard list defenses" in last
    assert "secure_aggregation" not in last
    hidden = replace(small, arms=small.arms[1:], findings=small.findings[2:])
    assert not any("not tried" in text for text in steps(hidden))


def test_the_defenses_of_a_recordings_plan_are_named_as_not_compared(small: Audit) -> None:
    plan = 'arms = [{name = "bare"}, {name = "quiet", defenses = [{kind = "noise"}]}]'
    recorded = replace(small, is_recorded=True, plan=plan, arms=small.arms[:1])
    told = " ".join(steps(recorded))
    assert "Have the defenses of the plan compared: “quiet”." in told
    assert "bare" not in told
    assert "of the plan compared" not in " ".join(steps(replace(recorded, plan="= no plan")))
    assert "of the plan compared" not in " ".join(steps(replace(recorded, is_recorded=False)))


def test_a_recording_is_one_run_that_no_seed_repeats(small: Audit) -> None:
    findings = (
        shares_finding("none", client(0), (1.0, 0.0), (0.7, 0.3), fits=FITS_LIKE_ANY),
        shares_finding("none", client(1), (1.0, 0.0), (0.3, 0.7), fits=FITS_LIKE_ANY),
    )
    recorded = replace(small, arms=small.arms[:1], findings=findings, is_recorded=True)
    told = " ".join(steps(recorded))
    assert "record a run with more clients or rounds" in told
    assert "more seeds or clients" not in told


def test_the_defense_that_does_best_comes_first_and_useless_ones_last(small: Audit) -> None:
    arms = (
        *small.arms,
        replace(small.arms[1], arm="weak"),
        replace(small.arms[1], arm="none at all"),
    )
    weak = two_findings("weak", (1.0, 0.0), (0.9, 0.1), fits=FITS_BEST)
    (first, *_) = steps(replace(small, arms=arms, findings=(*small.findings, *weak)))
    assert "have engineers use “noise”" in first
    assert first.endswith("Do not rely on “weak”: the leak was not shown to be smaller.")


def test_a_recording_that_names_no_defenses_asks_for_them(small: Audit) -> None:
    arm = replace(small.arms[0], are_defenses_known=False)
    assert NAME_DEFENSES in steps(replace(small, arms=(arm,), findings=small.findings[:2]))
    assert NAME_DEFENSES not in steps(small)
