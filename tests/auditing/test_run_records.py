"""What an audit notes: inputs, records, scores, seconds."""

from dataclasses import dataclass, replace
from math import inf
from pathlib import Path

import pytest
import torch

import overheard
from overheard.archive.manifest import DefenseRecord, Manifest
from overheard.archive.requested_rounds import RequestedRounds
from overheard.auditing.inputs import AuditInputs
from overheard.auditing.run_records import recorded_defenses, recorded_run
from overheard.auditing.score import COLUMNS, MAX_ROWS, ScoredClaims, score
from overheard.core.accounting.accountant import AccountedMechanism
from overheard.core.claims import Claim
from overheard.core.compute_settings import MemoryTensorCache
from overheard.core.errors import PlanError
from overheard.core.facts import Facts
from overheard.core.knowledge import Knowledge
from overheard.core.mechanism import Mechanism
from overheard.core.parties import Party, client
from overheard.core.scorer import Score
from overheard.core.true_facts.label_counts import LabelCounts
from overheard.core.truth import GroundTruth
from overheard.data.dataset_digest import dataset_digest
from overheard.data.datasets.custom import Own
from overheard.data.splits.quantity import Quantity
from overheard.findings.planned_sizes import REDRAWN_PARTITIONS
from overheard.plans.plan import ThreatPlan
from overheard.questions.label_shares.claim import LabelShares
from overheard.questions.label_shares.statistics.re_paired_shares import redrawn_share_fits
from overheard.questions.membership.attacks.loss_membership import LossMembership
from overheard.questions.membership.claim import Membership
from tests.auditing.conftest import HERE, inputs_for
from tests.auditing.plans import (
    CLIENT_THREAT,
    DATA,
    SERVER_THREAT,
    SMALL,
    TINY,
    replace_tables,
)
from tests.core.closed_form_epsilon import closed_epsilon

LOCAL = Mechanism(4.0, 1.0, 1e-5, "client", "client")


CENTRAL = replace(LOCAL, noised_at="server")


ALL = RequestedRounds(rounds=3, most=3, clients=6, share=1.0)


SOME = RequestedRounds(rounds=20, most=5, clients=101, share=0.1)


def accounted(
    mechanism: Mechanism,
    asked: RequestedRounds = ALL,
    *,
    has_ended: bool = True,
    so_far: int | None = None,
    **stated: object,
) -> AccountedMechanism:
    """Return the mechanism of a recording with these further facts in its manifest."""
    record = DefenseRecord("dp", "Dp()", "client", "each client", mechanism)
    manifest = replace(
        Manifest(None, "", None, (record,), ("server",), None, framework="other"), **stated
    )
    run = recorded_run(manifest, asked, has_ended=has_ended, so_far=so_far)
    (one,) = recorded_defenses(manifest, run)
    assert one.accounted is not None
    return one.accounted


def upper(found: AccountedMechanism) -> float:
    assert found.recomputed is not None
    return found.recomputed.smallest


def test_an_incomplete_recording_has_the_epsilon_of_its_planned_rounds() -> None:
    # Replacing a client moves 2 clips, so mu is sqrt(300) * 2 / 4.
    found = accounted(LOCAL, rounds=300)
    assert upper(found) == pytest.approx(closed_epsilon(300**0.5 / 2, 1e-5))
    assert found.run.rounds_text == "3 of 300 rounds recorded"
    assert accounted(LOCAL, rounds=3).run.rounds_text == "3 rounds"


def test_a_claim_of_an_incomplete_recording_is_false_only_by_the_rounds_asked() -> None:
    # Three rounds have an epsilon of 3.71, and three hundred 73.6.
    found = {
        stated: accounted(replace(LOCAL, stated=stated), rounds=300).claim
        for stated in (3.0, 4.0, 74.0)
    }
    assert found == {3.0: "false", 4.0: "not confirmed", 74.0: "holds"}


def test_without_planned_rounds_and_an_end_nothing_is_known_but_what_was_spent() -> None:
    for stated, claim in ((3.0, "false"), (4.0, "not confirmed"), (1000.0, "not confirmed")):
        found = accounted(replace(LOCAL, stated=stated), has_ended=False)
        assert (found.claim, found.run.is_open) == (claim, True)
        assert found.doubt.startswith("the recording has 3 rounds and no mark of its end")
    assert accounted(replace(LOCAL, stated=4.0)).claim == "holds"


def test_a_run_that_goes_on_has_spent_its_rounds_so_far() -> None:
    found = accounted(LOCAL, so_far=5, rounds=300)
    assert (found.run.rounds_text, found.run.is_open) == ("5 rounds so far", True)


def test_more_rounds_than_planned_all_count() -> None:
    assert accounted(LOCAL, rounds=2).run.rounds == 3


@pytest.mark.parametrize(
    ("stated", "is_credited", "lower"),
    [
        ({}, False, 0.0),
        ({"sampling": "fixed"}, True, 0.0),
        ({"sampling": "poisson", "participation": 0.1}, True, inf),
        # Five rounds of the client that was asked most: mu = sqrt(5) * 2 / 4.
        ({"sampling": "none"}, False, closed_epsilon(5**0.5 / 2, 1e-5)),
    ],
    ids=["not stated", "fixed", "poisson", "none"],
)
def test_sampling_of_clients_counts_as_stated(
    stated: dict[str, object], is_credited: bool, lower: float
) -> None:
    found = accounted(replace(CENTRAL, stated=1.0), SOME, **stated)
    assert found.recomputed is not None
    assert (found.recomputed.subsampled is not None) == is_credited
    if lower == inf:
        assert 0.9 * upper(found) < found.recomputed.lower < upper(found)
    else:
        assert found.recomputed.lower == pytest.approx(lower)
    # All replies were asked for: sampling plays no part.
    alone = accounted(replace(CENTRAL, stated=1.0), replace(SOME, share=1.0))
    assert alone.recomputed is not None
    assert alone.recomputed.subsampled is None
    assert alone.recomputed.lower > 0


def test_a_simulation_has_the_sampling_of_its_protocol() -> None:
    drawn = replace(CENTRAL, is_drawn=True)
    facts = {"framework": "overheard", "participation": 0.1}
    usual = accounted(drawn, SOME, **facts)
    assert usual.run.sampling == "fixed"
    poisson = accounted(drawn, SOME, protocol="fedavg, sampling poisson", **facts)
    assert (poisson.run.sampling, poisson.run.sampling_rate) == ("poisson", 0.1)


def test_an_observing_client_keeps_its_examples_and_the_server_has_none() -> None:
    audit_inputs = inputs_for(SMALL)
    by_client = audit_inputs.redrawn_counts(0, CLIENT_THREAT)[0]
    by_server = audit_inputs.redrawn_counts(0, SERVER_THREAT)[0]
    labels, rows = audit_inputs.partition(0).pool.labels, audit_inputs.partition(0).rows[0]
    own = labels[rows[0]].bincount(minlength=10)
    assert torch.equal(by_client[0], own.expand(REDRAWN_PARTITIONS, 10))
    assert len(by_server[0].unique(dim=0)) > REDRAWN_PARTITIONS / 2
    for counts in (by_client, by_server):
        assert len(counts[1].unique(dim=0)) > REDRAWN_PARTITIONS / 2
        assert {len(rows[1])} == set(counts[1].sum(1).tolist())


def test_what_an_observer_concludes_from_its_own_labels_is_no_leak() -> None:
    # Clients 0 and 1 share one list of the ten labels, five each: client 0 knows the labels of
    # client 1 without hearing anything. Its claim fits the truth no better than new partitions.
    data = DATA.model_copy(update={"split": Quantity(5)})
    audit_inputs = inputs_for(replace_tables(SMALL, data=data))
    partition = audit_inputs.partition(0)
    held = [partition.pool.labels[rows].bincount(minlength=10) for rows in partition.rows[0]]
    claim = (held[0] == 0).double() / 5
    p_values = {}
    for threat in (CLIENT_THREAT, SERVER_THREAT):
        redrawn = audit_inputs.redrawn_counts(0, threat)[0][1]
        shares = torch.cat([held[1][None], redrawn]).double() / held[1].sum()
        fits = redrawn_share_fits(claim[None, None].numpy(), shares[:, None].numpy())[:, 0]
        p_values[threat.observers] = float((fits >= fits[0] - 1e-9).mean())
    assert p_values[CLIENT_THREAT.observers] == 1.0
    assert p_values[SERVER_THREAT.observers] < 0.025


def test_threats_with_the_same_observing_clients_share_their_partitions() -> None:
    audit_inputs = inputs_for(SMALL)
    other = replace_attacks(CLIENT_THREAT, SERVER_THREAT)
    assert audit_inputs.redrawn_counts(0, CLIENT_THREAT) is audit_inputs.redrawn_counts(
        0, other
    )


def test_nothing_is_drawn_for_a_question_that_needs_no_partitions() -> None:
    threat = ThreatPlan(attacks=(LossMembership(),))
    assert inputs_for(SMALL).redrawn_counts(0, threat) == ()


def replace_attacks(threat: ThreatPlan, other: ThreatPlan) -> ThreatPlan:
    """Return the threat with the attacks of another one."""
    return threat.model_copy(update={"attacks": other.attacks})


def test_a_file_that_is_read_in_two_ways_has_two_digests(tmp_path: Path) -> None:
    path = tmp_path / "spare.csv"
    lines = [f"{one % 10},{one % 10 / 9},{one}" for one in range(600)]
    path.write_text("\n".join(("label,a,b", *lines)))
    audited, other = Own(str(path)), Own(str(path), label="a", task="regression")
    datasets = [source.load(tmp_path) for source in (audited, other)]
    plan = replace_tables(TINY, data=TINY.data.model_copy(update={"source": audited}))
    inputs = AuditInputs(plan, datasets[0], {other: datasets[1]}, HERE, MemoryTensorCache())
    assert inputs.data_digests() == {
        str(path): dataset_digest(datasets[0]),
        repr(other): dataset_digest(datasets[1]),
    }


KNOWLEDGE = Knowledge(classes=2)


# client 0 holds 1 + 3 and 3 + 1 examples of the labels, client 1 holds 4 + 0 twice
TRUTH = GroundTruth(Facts(LabelCounts({
    (0, client(0)): torch.tensor([1, 3]), (1, client(0)): torch.tensor([3, 1]),
    (0, client(1)): torch.tensor([4, 0]), (1, client(1)): torch.tensor([4, 0]),
})))  # fmt: skip


def shares(*values: float) -> LabelShares:
    return LabelShares(torch.tensor(values))


def test_scores_each_claim_against_the_truth_of_its_rounds():
    claims = {client(0): shares(0.5, 0.5), client(1): shares(0.9, 0.1)}
    whole = score(claims, TRUTH, KNOWLEDGE, (0, 1))
    assert whole.question == "label_shares"
    l1 = {target: scores[0] for target, scores in whole.by_target.items()}
    assert [(one.name, round(one.value, 5)) for one in l1.values()] == [("l1", 0), ("l1", 0.2)]
    # of round 0 alone client 0 has a quarter and three: a quarter off twice
    first = score(claims, TRUTH, KNOWLEDGE, (0,)).by_target[client(0)][0]
    assert first.value == pytest.approx(0.5)


def test_a_frame_has_one_row_per_target_and_score():
    scored = overheard.score({client(1): shares(0.9, 0.1)}, TRUTH, KNOWLEDGE, (0, 1))
    frame = scored.to_frame()
    assert tuple(frame.columns) == COLUMNS
    assert len(frame) == len(scored.by_target[client(1)])
    first = frame.iloc[0]
    # halves are a half off twice
    assert (first["target"], first["score"], first["better"]) == ("client/1", "l1", "lower")
    assert (first["value"], first["best guess"]) == (pytest.approx(0.2), pytest.approx(1.0))
    assert first["gain"] == pytest.approx(0.8)


@dataclass(frozen=True)
class Hunch(Claim):
    def numbers(self) -> tuple[float, ...]:
        return ()


def test_refuses_unknown_and_mixed_claims():
    membership = Membership(torch.zeros(1))
    with pytest.raises(ValueError, match="got LabelShares, Membership"):
        score({client(0): shares(0.5, 0.5), client(1): membership}, TRUTH, KNOWLEDGE, (0,))
    with pytest.raises(ValueError, match="got no claims"):
        score({}, TRUTH, KNOWLEDGE, (0,))
    with pytest.raises(PlanError, match="Hunch"):
        score({client(0): Hunch()}, TRUTH, KNOWLEDGE, (0,))


def test_a_table_escapes_names_and_stays_small():
    one = Score("<b>", 0.5, "lower", {}, {})
    page = ScoredClaims("label_shares", {Party("<i>"): (one,) * (MAX_ROWS + 3)})._repr_html_()
    assert "&lt;b&gt;" in page
    assert "<i>" not in page
    assert page.count("<tr>") == MAX_ROWS + 1
    assert "3 more rows" in page
