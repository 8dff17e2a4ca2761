"""Cohorts follow their schedule, and those of a null are told wrongly."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from overheard.archive.reader import open_transcript
from overheard.auditing.inputs import Resources
from overheard.core.parties import client
from overheard.data.datasets.digits import Digits
from overheard.data.splits.dirichlet import Dirichlet
from overheard.defenses.secure_aggregation import SecureAggregation
from overheard.federation.federation import Federation
from overheard.learning.models.logistic import Logistic
from overheard.participation.participation import Participation, find_participation
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan, TrainingPlan
from overheard.plans.virtual_plan import VirtualPlan
from overheard.questions.label_shares.attacks.sum_shares import SumShares
from overheard.statistics.estimate import Estimate
from overheard_studies.measurements.from_sums.curves import PLACES, sums_curves
from overheard_studies.measurements.from_sums.deviations import (
    change_cohorts,
    change_labels,
    listen,
    renew_records,
)
from overheard_studies.measurements.from_sums.nulls import (
    ROUNDS,
    tell_other_cohorts,
    trending_cohorts,
)
from overheard_studies.measurements.from_sums.scheduled import attack_sums, run_schedule
from overheard_studies.runs import StudyRuns
from overheard_studies.study import MeasurementRun
from overheard_studies.values import make_value

PLAN = Plan(
    data=DataPlan(
        source=Digits(),
        split=Dirichlet(alpha=0.5),
        clients=3,
        examples=30,
        auxiliary_per_class=4,
        test=30,
    ),
    training=TrainingPlan(model=Logistic(), rounds=4, rate=0.1, batch=10),
    arms=(ArmPlan(name="sums only", defenses=(SecureAggregation(),)),),
    threats=(
        ThreatPlan(
            attacks=(SumShares(sweeps=4),), virtual=VirtualPlan(clients=24), by_round=False
        ),
    ),
)

NO_RUNS = StudyRuns({}, {}, Path(), Resources(device="cpu", workers=1))

PAIRS = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]], dtype=bool)


def measurement(folder: Path) -> MeasurementRun:
    return MeasurementRun(folder, Resources(device="cpu", workers=1), quick=True, seeds=())


def participation(folder: Path) -> Participation:
    found = find_participation(open_transcript(folder).messages)
    assert found is not None
    return found


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    folder = tmp_path / "recording"
    run_schedule(PLAN, 0, folder, measurement(tmp_path), PAIRS)
    return folder


def test_cohorts_follow_their_schedule(recording: Path) -> None:
    assert participation(recording).took_part.tolist() == PAIRS.tolist()


def test_other_cohorts_are_told_to_the_server_and_the_truth(
    recording: Path, tmp_path: Path
) -> None:
    told = PAIRS[:, [1, 2, 0]]
    before = (recording / "truth.json").read_text()
    tell_other_cohorts(recording, told, tmp_path)
    assert participation(recording).took_part.tolist() == told.tolist()
    assert (recording / "truth.json").read_text() != before
    assert not any("update" in path.read_text() for path in recording.glob("**/messages.jsonl"))


@pytest.mark.slow
def test_the_attack_is_measured_after_some_of_the_rounds(tmp_path: Path) -> None:
    first, last = attack_sums(PLAN, 0, (2, 4), measurement(tmp_path), PAIRS)
    assert (first.rounds, last.rounds) == (2, 4)
    assert last.claimed.shape == last.true.shape == (3, 10)
    assert np.allclose(last.true.sum(axis=1), 1)
    assert 0 <= last.coverage <= 1
    assert last.error > 0


def test_availability_rises_for_some_clients_and_falls_for_others() -> None:
    took_part = trending_cohorts(0)
    early, late = np.split(took_part, 2)
    change = late.mean(axis=0) - early.mean(axis=0)
    assert took_part.shape == (ROUNDS, 20)
    assert change.max() > 0.3
    assert change.min() < -0.3
    assert took_part.sum(axis=1).min() >= 2


@pytest.mark.parametrize("is_exchange", [True, False])
def test_two_cohorts_are_told_wrongly(recording: Path, is_exchange: bool) -> None:
    transcript = open_transcript(recording)
    differ = []
    for seed in range(8):
        changed = change_cohorts(transcript, seed, is_exchange=is_exchange)
        told = find_participation(changed.messages)
        assert told is not None
        assert told.took_part.sum(axis=1).tolist() == [2] * 4
        if is_exchange:
            assert sorted(told.took_part.tolist()) == sorted(PAIRS.tolist())
        differ.append(int((told.took_part != PAIRS).any(axis=1).sum()))
    # An exchange of equal cohorts, or one drawn as it was, changes nothing.
    assert max(differ) == 2


def test_a_client_reads_who_took_part_only_where_it_is_announced(recording: Path) -> None:
    transcript = open_transcript(recording)
    assert find_participation(transcript.seen_by(client(0)).messages) is None
    found = find_participation(listen(PLAN, transcript).messages, (client(0),))
    assert found is not None
    assert found.took_part.tolist() == PAIRS[:, 1:].tolist()


def test_a_fifth_of_the_records_of_each_client_is_new_each_round(tmp_path: Path) -> None:
    rows = list[Sequence[torch.Tensor]]()

    def change(federation: Federation) -> Federation:
        renewed = renew_records(federation, 0)
        labels = federation.pool.labels
        for held in renewed.rows:
            for one, first in zip(held, federation.rows[0], strict=True):
                assert set(labels[one].tolist()) <= set(labels[first].tolist())
        rows.extend(renewed.rows)
        return renewed

    run_schedule(PLAN, 0, tmp_path / "run", measurement(tmp_path), change=change)
    for before, after in pairwise(rows):
        for old, new in zip(before, after, strict=True):
            assert len(set(new.tolist())) == len(new) == len(old)
            assert len(set(new.tolist()) - set(old.tolist())) <= 6
            assert len(set(new.tolist()) & set(old.tolist())) >= 24


@pytest.mark.parametrize("is_sudden", [True, False])
def test_clients_end_with_the_records_of_the_next_one(tmp_path: Path, is_sudden: bool) -> None:
    rows = list[Sequence[torch.Tensor]]()

    def change(federation: Federation) -> Federation:
        changed = change_labels(federation, is_sudden=is_sudden)
        rows.extend(changed.rows)
        return changed

    run_schedule(PLAN, 0, tmp_path / "run", measurement(tmp_path), change=change)
    first = [set(held.tolist()) for held in rows[0]]
    own = [[len(set(held[0].tolist()) & first[0]) for held in rows]]
    # 30 records of 4 rounds: a third of them changes each time, or all in the middle.
    assert own == [[30, 30, 0, 0] if is_sudden else [30, 20, 10, 0]]
    assert [set(held.tolist()) for held in rows[-1]] == [*first[1:], first[0]]


def test_the_prediction_is_judged_in_all_places_or_not_at_all() -> None:
    each = {"low": 0.2, "ratio": 0.3, "high": 0.4, "of_measured": 0.8}
    made = [
        make_value(f"{place}_{end}", "", value)
        for place in PLACES
        for end, value in each.items()
    ]
    # All are within the range, but in the first place the range ends below the measured error.
    made[2] = make_value(f"{PLACES[0]}_high", "", 0.25)
    off, outside = (one.statistics for one in sums_curves().conclusions)
    assert off is not None
    assert outside is not None
    farthest = off(NO_RUNS, made)["farthest"]
    assert isinstance(farthest, Estimate)
    assert farthest.mean == pytest.approx(0.2)
    assert outside(NO_RUNS, made) == {"outside": Estimate(1.0, 1.0, 1.0)}
    assert outside(NO_RUNS, made[1:]) == {"outside": None}
