from dataclasses import replace
from pathlib import Path

import pytest
import torch

from overheard.core.defense import Defense, DefenseContext
from overheard.core.examples import Examples
from overheard.core.facts import Facts
from overheard.core.messages import MissingReply
from overheard.core.parties import COHORT, client, is_shadow_device, shadow_device
from overheard.core.true_facts.attributes import Attributes
from overheard.core.true_facts.label_counts import LabelCounts
from overheard.core.true_facts.shifts import Shifts
from overheard.core.true_facts.users_of_clients import UsersOfClients
from overheard.core.truth import GroundTruth
from overheard.federation.federation import Federation
from overheard.federation.run import run

HANDS = {"ann": "left", "bob": "right"}


class OnlyZeros(Defense):
    name = "only zeros"
    source = "this test"
    enforced_at = "client"
    switched_off_by = "the client"

    def on_data(self, data: Examples, context: DefenseContext) -> Examples:
        return Examples(data.inputs, torch.zeros_like(data.labels))


def counts_of(truth: GroundTruth) -> LabelCounts:
    return truth.facts.need(LabelCounts)


def test_counts_the_labels_of_each_client_in_each_round(
    small: Federation, tmp_path: Path
) -> None:
    shifted = replace(
        small,
        rows=[
            [torch.tensor([0]), torch.tensor([1, 2, 3])],
            [torch.tensor([0, 1]), torch.tensor([2, 3])],
        ],
    )
    _, truth = run(shifted, tmp_path)
    assert {key: counts.tolist() for key, counts in counts_of(truth).counts.items()} == {
        (0, client(0)): [1, 0],
        (0, client(1)): [0, 3],
        (1, client(0)): [1, 1],
        (1, client(1)): [0, 2],
    }
    assert counts_of(truth).counts_of(COHORT, (0, 1)).tolist() == [2, 6]


def test_a_long_run_is_tested_at_evenly_spaced_rounds(
    small: Federation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = replace(small, rounds=4, rows=[small.rows[0]] * 4)
    _, whole = run(long, tmp_path / "whole")
    assert list(whole.accuracy) == [0, 1, 2, 3, 4]
    monkeypatch.setattr("overheard.federation.run.MAX_TESTED_BROADCASTS", 3)
    _, sampled = run(long, tmp_path / "sampled")
    assert sampled.accuracy == {number: whole.accuracy[number] for number in (0, 2, 4)}


def test_counts_labels_before_any_defense(small: Federation, tmp_path: Path) -> None:
    _, truth = run(replace(small, defenses=(OnlyZeros(),)), tmp_path)
    assert counts_of(truth).counts[0, client(1)].tolist() == [0, 3]


def test_counts_only_clients_with_an_update(crowd: Federation, tmp_path: Path) -> None:
    transcript, truth = run(replace(crowd, participation=0.5, failure_rate=0.5), tmp_path)
    absent = {
        (m.round, m.sender) for m in transcript.messages if isinstance(m.body, MissingReply)
    }
    assert absent
    assert not absent & counts_of(truth).counts.keys()
    assert len(absent) + len(counts_of(truth).counts) == 30


def test_knows_the_accuracy_of_every_broadcast_and_of_the_final_model(
    small: Federation, tmp_path: Path
) -> None:
    _, truth = run(small, tmp_path)
    # At first both classes are tied and the first is predicted, which 1 of 4 has. After round 0
    # the weights are (-1.25, 1.25): every input, being positive, is predicted as class 1.
    assert truth.accuracy[0] == 0.25
    assert truth.accuracy[1] == 0.75
    assert list(truth.accuracy) == [0, 1, 2]


def test_records_users_and_attributes_but_nothing_of_shadow_devices(
    small: Federation, tmp_path: Path
) -> None:
    federation = replace(
        small,
        shadows=1,
        facts=Facts(UsersOfClients({client(0): "ann"}), Attributes({"hand": HANDS})),
    )
    transcript, truth = run(federation, tmp_path)
    assert all(fact in list(truth.facts) for fact in federation.facts)
    assert {party for _, party in counts_of(truth).counts} == {client(0)}
    assert counts_of(truth).counts_of(COHORT, (0, 1)).tolist() == [2, 0]
    senders = {m.sender for m in transcript.messages}
    assert [party for party in senders if is_shadow_device(party)] == [shadow_device(0)]
    # A complete run is opened with the same truth.
    again = run(federation, tmp_path)[1]
    assert all(fact in list(again.facts) for fact in federation.facts)


def test_records_shifts_which_do_not_change_the_run(small: Federation, tmp_path: Path) -> None:
    shifts = Facts(Shifts({client(1): (1,)}))
    plain, truth = run(small, tmp_path / "plain")
    transcript, shifted = run(replace(small, facts=shifts), tmp_path / "shifted")
    assert truth.facts.get(Shifts) is None
    assert shifted.facts.get(Shifts) == shifts.get(Shifts)
    assert truth.accuracy == shifted.accuracy
    assert [m.sender for m in plain.messages] == [m.sender for m in transcript.messages]
