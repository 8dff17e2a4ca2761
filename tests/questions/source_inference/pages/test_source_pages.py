"""Pages state how often the client is named, beside what each guess reaches."""

from dataclasses import replace

import torch

from overheard.auditing.threat_results import with_verdicts
from overheard.core.knowledge import Knowledge
from overheard.core.parties import SERVER, Party
from overheard.findings.audit import Audit
from overheard.findings.finding import ArmRun, Cell, ClaimRow, Finding
from overheard.questions.source_inference.claim import RecordSources
from overheard.questions.source_inference.pages.report import SourceInferencePages
from overheard.questions.source_inference.question import SourceInferenceQuestion
from overheard.questions.source_inference.scorer import SourceInferenceScorer
from overheard.report.threat_sentences import threat_sentences

SCORER, CLIENTS = SourceInferenceScorer(), 4

PAGES = SourceInferencePages(SourceInferenceQuestion())


def audit_of(kind: str) -> Audit:
    """Return a claim that names the right one of four clients for three of eight records."""
    sources = torch.tensor([0, 0, 1, 1, 2, 2, 3, 3, 4, 4])
    named = torch.tensor([0, 0, 1, 2, 3, 3, 0, 1, 0, 0])
    table = torch.full((10, 5), 0.1)
    table[torch.arange(10), named] = 0.6
    claim = RecordSources(
        tuple(Party(f"{kind}/{number}") for number in range(CLIENTS)),
        table,
        torch.zeros(10, dtype=torch.int64),
        (10, 10, 10, 30),
    )
    frequency = torch.full((10, 4), 0.2)
    frequency[:, 1] = 0.4
    truth = replace(claim, probabilities=torch.eye(5)[sources], label_frequency=frequency)
    finding = Finding(
        Cell("open", 0, (SERVER,), "loss", "Loss()", "source_inference", (0,), label="loss"),
        claim.clients,
        ClaimRow.of(claim),
        ClaimRow.of(truth),
        SCORER.score(claim, truth, SCORER.guesses(truth, Knowledge(2))),
    )
    run = ArmRun("open", 0, (), {}, 0, CLIENTS)
    return with_verdicts(
        Audit("Sources", "Made up", ("a", "b"), (run,), (finding,), (), "", {})
    )


def sentences_of(kind: str) -> str:
    (arm,) = audit_of(kind).arm_results
    (result,) = arm.threat_results
    return " ".join(threat_sentences(result)).replace("\u00a0", " ")


def test_the_share_of_right_clients_stands_beside_all_guesses() -> None:
    text = sentences_of("client")
    assert "The right client is named for 37.5 % of the records of the clients" in text
    assert (
        "Guesses beside it: naming any client, 25.0 %; naming the client that states the most "
        "examples, 25.0 %; naming the client with the most examples of the record's label, "
        "25.0 %." in text
    )
    assert "(even odds: 0.25)" in text


def test_without_a_verdict_the_page_says_why() -> None:
    assert "so style alone could tell who holds a record: take canaries" in sentences_of(
        "client"
    )


def test_pseudonyms_are_said_to_hide_the_client_and_not_the_update() -> None:
    assert "the attack names an update and not a client" in sentences_of("anon")
    assert "the attack names an update" not in sentences_of("client")


def test_the_table_has_a_column_for_each_guess() -> None:
    audit = audit_of("client")
    (section,) = PAGES.sections(audit, audit.arm_results)
    (table,) = section.blocks[0].tables
    cells = dict(zip(table.headers, table.rows[0], strict=True))
    shown = {name: cells[name].replace("\u00a0", " ") for name in cells}
    assert (
        shown["Any client"] == shown["The largest client"] == shown["Label frequency"] == "25 %"
    )
    assert shown["Even odds"] == "0.25"


def test_an_unchecked_claim_states_how_many_records_it_attributes() -> None:
    (finding,) = audit_of("client").findings
    assert (
        PAGES.describe_claim(finding) == "10 of 10 records claimed to be of one of the clients"
    )
