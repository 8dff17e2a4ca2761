"""The tables on epsilon by client and by unit of privacy."""

from dataclasses import replace

from overheard.auditing.threat_results import with_verdicts
from overheard.core.accounting.client_accounts import (
    ClientAccounts,
    ClientSteps,
    account_clients,
)
from overheard.core.accounting.composed_steps import NoisySteps
from overheard.core.mechanism import Mechanism
from overheard.core.parties import Party
from overheard.drawing.sections import SectionBlock
from overheard.epsilon.client_table import client_blocks
from overheard.epsilon.epsilon_results import epsilon_results
from overheard.findings.audit import Audit
from overheard.report.exports import findings_document
from overheard.report.page import render_page
from overheard.report.release.left_out import ReleaseSettings
from overheard.report.release.released_findings import release_findings
from tests.auditing.epsilon_audits import audit_of, noisy_finding

RECORDS = Mechanism(4.0, 1.0, 1e-5, "client", "client", 1.0, "record", record_sampling="none")


def accounts_of(clients: int, sampling: str = "none") -> ClientAccounts:
    """Return accounts: client k sent k messages with noise, and the last one without."""
    steps = NoisySteps(4.0, "none", 1.0, 1)
    if sampling == "shuffled":
        steps = NoisySteps(4.0, "shuffled", 0.5, 2)
    spent = [
        ClientSteps(Party(f"client/{number}"), ((steps,),) * number, records=30)
        for number in range(clients - 1)
    ]
    bare = ClientSteps(Party("client/bare"), ((),), "states no DP-SGD", 30)
    found = account_clients([*spent, bare], 1e-5)
    assert found is not None
    return found


def audit_with(accounts: ClientAccounts) -> Audit:
    audit = audit_of(RECORDS, noisy_finding(4.0), settings="Opacus()")
    bare, noisy = audit.arms
    (defense,) = noisy.defenses
    noisy = replace(noisy, defenses=(replace(defense, clients=accounts),))
    return replace(audit, arms=(bare, noisy))


def tables(accounts: ClientAccounts) -> tuple[SectionBlock, SectionBlock]:
    clients, units = client_blocks(epsilon_results(audit_with(accounts)))
    return clients, units


def test_few_clients_are_listed_each_and_many_by_extremes_and_median() -> None:
    clients, _ = tables(accounts_of(4))
    (table,) = clients.tables
    assert [row[0] for row in table.rows] == [
        "client/bare",
        "client/2",
        "client/1",
        "client/0",
    ]
    assert table.rows[0][3:] == (
        "above 50: protects nobody",
        "it states no DP-SGD in 1 of 1 messages",
    )
    assert table.rows[-1][1:] == ("0", "0", "0.00", "")
    many, _ = tables(accounts_of(30))
    (table,) = many.tables
    assert [row[0] for row in table.rows] == [
        "largest: client/bare",
        "median: client/15",
        "smallest: client/0",
    ]
    (note,) = many.paragraphs
    assert note.startswith("Each of the 30 clients has an accountant")


def test_units_are_side_by_side_and_poisson_is_not_this_runs() -> None:
    found = accounts_of(3, "shuffled")
    # The client with a known epsilon comes first if nobody lacks noise.
    known = account_clients(
        [ClientSteps(Party("client/a"), ((NoisySteps(4.0, "shuffled", 0.5, 2),),), records=30)],
        1e-5,
    )
    assert known is not None
    assert found.as_poisson is None
    _, units = tables(known)
    (table,) = units.tables
    assert [row[0] for row in table.rows] == [
        "one record",
        "one user with 2 records",
        "one user with 10 records",
        "the client, with all its 30 records",
    ]
    (note,) = units.paragraphs
    assert "which is not this run's" in note


def test_the_page_and_the_findings_have_the_clients_and_a_release_has_not() -> None:
    audit = audit_with(accounts_of(4))
    assert "Units side by side" in render_page(with_verdicts(audit))
    document = findings_document(audit)
    (by_client, *_) = [one.by_client for one in document.epsilon]
    assert by_client is not None
    assert (by_client.clients, by_client.largest.client) == (4, "client/bare")
    assert by_client.largest.epsilon is None
    released = release_findings(document, (), ReleaseSettings())
    assert all(row.by_client is None for row in released.document.epsilon)
