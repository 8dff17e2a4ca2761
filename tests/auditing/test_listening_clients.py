"""Clients and late joiners that know who took part ask about single clients, by broadcasts."""

from pathlib import Path

import pytest

from overheard.algorithms.scaffold import Scaffold
from overheard.auditing.folder import AuditFolder
from overheard.auditing.inputs import Resources
from overheard.core.algorithm.deduced_view import CORRECTED_UPDATES, UNKNOWN_COHORTS
from overheard.core.needs import BROADCASTS, SUMS
from overheard.core.parties import client, late_joiner
from overheard.data.partition.candidates import CandidateSettings
from overheard.data.splits.dirichlet import Dirichlet
from overheard.findings.audit import Audit
from overheard.findings.finding import Finding
from overheard.planning.plan_check import check_plan
from overheard.plans.plan import KnownPart, Plan, ThreatPlan
from overheard.plans.virtual_plan import VirtualPlan
from overheard.questions.label_shares.attacks.sum_shares import SumShares
from overheard.questions.membership.attacks.sum_membership import SumMembership
from overheard.questions.source_inference.attacks.sum_source import SumSource
from tests.auditing.conftest import audit_here
from tests.auditing.plans import TINY, replace_tables

GRANTED: tuple[KnownPart, ...] = ("auxiliary", "model", "recipe", "cohorts")
NOT_GRANTED: tuple[KnownPart, ...] = GRANTED[:3]


def listens(observer: str, knows: tuple[KnownPart, ...] = GRANTED) -> ThreatPlan:
    virtual = VirtualPlan(clients=48, examples=(40, 40))
    return ThreatPlan(
        observers=(observer,),
        attacks=(SumShares(sweeps=20),),
        knows=knows,
        virtual=virtual,
        by_round=False,
    )


def plan_of(*threats: ThreatPlan, participation: float = 0.5) -> Plan:
    """Six clients with few labels each; three take part in each of 14 rounds."""
    data = TINY.data.model_copy(
        update={
            "clients": 6,
            "examples": (40, 40),
            "auxiliary_per_class": 8,
            "split": Dirichlet(alpha=0.1),
        }
    )
    changed = {"rounds": 14, "participation": participation}
    training = TINY.training.model_copy(update=changed)
    return replace_tables(TINY, data=data, training=training, threats=threats)


def found_by(audit: Audit, observer: str) -> list[Finding]:
    return [one for one in audit.findings if one.cell.observers == (observer,)]


@pytest.fixture(scope="module")
def heard(tmp_path_factory: pytest.TempPathFactory) -> tuple[Audit, Path]:
    """An audit with all listeners, and its folder."""
    folder = tmp_path_factory.mktemp("listeners") / "out"
    threats = (
        listens("client/0"),
        listens("client/0", NOT_GRANTED),
        listens("late/6"),
        listens("release"),
        listens("server"),
    )
    return audit_here(plan_of(*threats), folder), folder


@pytest.mark.slow
def test_a_client_that_knows_who_took_part_tells_the_others_apart(
    heard: tuple[Audit, Path],
) -> None:
    found = found_by(heard[0], client(0))
    assert {one.target for one in found} == {client(number) for number in range(1, 6)}
    assert all("knowing who took part" in one.cell.label for one in found)
    # Claims differ from client to client, and are closer than the mean of their true shares.
    means = [
        sum(column) / 5 for column in zip(*(one.true_numbers for one in found), strict=True)
    ]
    error = guess = 0.0
    for one in found:
        pairs = zip(one.claimed.numbers, one.true_numbers, means, strict=True)
        for claimed, true, mean in pairs:
            error += abs(claimed - true)
            guess += abs(mean - true)
    assert error < 0.5 * guess


@pytest.mark.slow
def test_intervals_of_hidden_sizes_have_room_for_half_an_example(
    heard: tuple[Audit, Path],
) -> None:
    # A client has 40 examples, and does not read that the others have as many.
    for one in found_by(heard[0], client(0)):
        rows = zip(one.claimed.low, one.claimed.high, strict=True)
        assert min(high - low for low, high in rows) > 0.5 / 40


@pytest.mark.slow
def test_a_late_joiner_reads_the_rounds_after_it_joined(heard: tuple[Audit, Path]) -> None:
    found = found_by(heard[0], late_joiner(6))
    assert {one.target for one in found} == {client(number) for number in range(6)}
    assert min(min(one.sent_rounds) for one in found) == 6


@pytest.mark.slow
def test_others_are_refused_and_told_how_to_mend_it(heard: tuple[Audit, Path]) -> None:
    refused = {one.cell.observers[0]: one.missing for one in heard[0].refusals}
    assert refused == {client(0): (UNKNOWN_COHORTS,), "release": (SUMS.description,)}


@pytest.mark.slow
def test_a_recording_tells_a_client_as_much(heard: tuple[Audit, Path], tmp_path: Path) -> None:
    audit, folder = heard
    run = AuditFolder(folder).run_path("no defense", 0)
    plan = plan_of(listens("client/0"))
    again = audit_here(plan, tmp_path / "again", recording=run)
    assert [one.claimed for one in again.findings] == [
        one.claimed for one in found_by(audit, client(0))
    ]
    lines = check_plan(plan, HERE, run, with_estimate=False).sums
    assert lines[0].startswith(
        "Known to client 0 from broadcasts: 14 sums, each of 2 to 3 of 5"
    )


@pytest.mark.slow
def test_the_server_gains_nothing_by_being_told(
    heard: tuple[Audit, Path], tmp_path: Path
) -> None:
    untold = audit_here(plan_of(listens("server", NOT_GRANTED)), tmp_path)
    assert untold.findings == tuple(found_by(heard[0], "server"))


def test_cohorts_that_do_not_vary_tell_no_client_apart(tmp_path: Path) -> None:
    plan = plan_of(listens("client/0"), participation=1.0)
    found = audit_here(plan, tmp_path)
    assert found.findings == ()
    for one in found.refusals:
        assert "cohorts that vary" in " ".join(one.missing)


HERE = Resources(device="cpu", workers=1)


def test_a_plan_check_foretells_who_listens_to_whom() -> None:
    """Records are asked about as shares are."""
    records = CandidateSettings(members=2, outsiders=8)
    attacks = (SumShares(), SumMembership(), SumSource())
    knowing, unknowing = (
        listens("client/1", knows).model_copy(update={"attacks": attacks})
        for knows in (GRANTED, NOT_GRANTED)
    )
    plan = plan_of(knowing, unknowing)
    plan = replace_tables(plan, data=plan.data.model_copy(update={"candidates": records}))
    checked = check_plan(plan, HERE, None, with_estimate=False)
    assert [one.able_count for one in checked.attacks] == [5, 5, 5, 0, 0, 0]
    refused = {reason for one in checked.attacks for reason, _ in one.missing}
    assert refused == {UNKNOWN_COHORTS}
    assert checked.sums[0].startswith("Known to client 1 from broadcasts: 14 sums in arm")
    assert "equal sizes" in checked.sums[1]
    assert BROADCASTS.description not in refused


def test_a_plan_check_foretells_that_corrected_updates_are_no_sums() -> None:
    plan = plan_of(listens("client/1"))
    training = plan.training.model_copy(update={"algorithm": Scaffold(), "rounds": 3})
    plan = replace_tables(plan, training=training)
    checked = check_plan(plan, HERE, None, with_estimate=False)
    assert [one.missing for one in checked.attacks] == [((CORRECTED_UPDATES, 5),)]
    assert checked.sums == ()
