"""Candidate records that the owner of a recording lists, from the file to the verdict."""

from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console
from torch import Tensor, nn

from overheard.archive.reader import open_transcript
from overheard.auditing.inputs import Resources
from overheard.auditing.judging import record_difference
from overheard.auditing.judging.record_difference import measure_record_difference
from overheard.auditing.recorded_truth import read_recorded_truth
from overheard.auditing.run import audit
from overheard.cli.audit_and_report import print_missing_verdicts
from overheard.core.errors import DataError, PlanError, TranscriptError
from overheard.core.examples import Examples, without_classes
from overheard.core.messages import Broadcast, Update
from overheard.core.parties import COHORT, SERVER, Party, client
from overheard.core.scorer import Score
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.core.true_facts.record_owners import RecordOwners
from overheard.data.datasets.custom import Own
from overheard.data.listed_records import ListedRecords, members_of_cells
from overheard.data.partition.data_partition import DataPartition
from overheard.findings.finding import ArmRun, Cell, ClaimRow, Finding
from overheard.learning.models.custom import Own as OwnModel
from overheard.planning.first_plan.request import FirstPlanRequest
from overheard.planning.first_plan.writing import write_first_plan
from overheard.planning.plan_check import check_plan
from overheard.planning.recorded_facts import read_recorded_facts
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import Plan, ThreatPlan, TrainingPlan
from overheard.questions.membership.attacks.gradient_membership import GradientMembership
from overheard.questions.membership.attacks.loss_membership import LossMembership
from overheard.questions.membership.statistics.re_paired_owners import re_pair_owners
from overheard.questions.source_inference.statistics.re_paired_sources import re_pair_sources
from overheard.recorders.async_writer import AsyncWriter
from overheard.recorders.run_info import RunInfo

HERE = Resources(device="cpu", workers=1)
CLIENTS, EACH, INPUTS = 3, 50, 70


class Line(nn.Module):
    """A linear regression, without an axis of its own for the output."""

    def __init__(self) -> None:
        super().__init__()
        self.line = nn.Linear(INPUTS, 1)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return a number for each example."""
        outputs: Tensor = self.line(inputs).squeeze(1)
        return outputs


def draw(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw examples whose numbers are noise, so that a model can only memorise them."""
    draws = np.random.default_rng(seed)
    return draws.normal(size=(count, INPUTS)), draws.normal(size=count)


def recorded(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Record two rounds of linear regressions; return the examples of all clients in order."""
    inputs, numbers = draw(CLIENTS * EACH, 0)
    x, y = torch.from_numpy(inputs).float(), torch.from_numpy(numbers).float()
    parties = [client(number) for number in range(CLIENTS)]
    weights = {"line.weight": torch.zeros(1, INPUTS), "line.bias": torch.zeros(1)}
    writer = AsyncWriter(folder, RunInfo("flower"))
    for _ in range(2):
        writer.begin_round([SERVER])
        writer.write(SERVER, frozenset(parties), lambda w=weights: Broadcast(dict(w)))
        deltas = []
        for number, party in enumerate(parties):
            rows = slice(number * EACH, (number + 1) * EACH)
            local = {name: one.clone() for name, one in weights.items()}
            for _ in range(20):
                error = (x[rows] @ local["line.weight"].T + local["line.bias"])[:, 0] - y[rows]
                local["line.weight"] -= 0.03 * 2 * (error[:, None] * x[rows]).mean(0)
                local["line.bias"] -= 0.03 * 2 * error.mean()
            deltas.append({name: local[name] - weights[name] for name in weights})
            writer.write(party, frozenset({SERVER}), lambda d=deltas[-1]: Update(d, EACH))
        weights = {
            name: one + torch.stack([delta[name] for delta in deltas]).mean(0)
            for name, one in weights.items()
        }
        writer.commit()
    writer.begin_round([SERVER])
    writer.write(SERVER, frozenset(parties), lambda w=weights: Broadcast(dict(w)))
    writer.commit()
    writer.close()
    return inputs, numbers


def request(tmp_path: Path, *, moved: float, column: str) -> FirstPlanRequest:
    """Write spare data and a list of all examples of clients and of as many outsiders."""
    inputs, numbers = recorded(tmp_path / "recording")
    spare, others = draw(300, 1), draw(CLIENTS * EACH, 2)
    np.savez(tmp_path / "spare.npz", x=spare[0], y=spare[1])
    owners = [str(row // EACH) for row in range(CLIENTS * EACH)] + ["none"] * CLIENTS * EACH
    cells = owners if column == "owner" else [str(int(one != "none")) for one in owners]
    np.savez(
        tmp_path / "records.npz",
        x=np.concatenate((inputs, others[0] + moved)),
        y=np.concatenate((numbers, others[1])),
        **{column: np.array(cells)},
    )
    return FirstPlanRequest(
        read_recorded_facts(tmp_path / "recording"),
        data=str(tmp_path / "spare.npz"),
        model=f"{__name__}:Line",
        candidates=str(tmp_path / "records.npz"),
        read=("scale = 'as_written'",),
    )


@pytest.mark.slow
@pytest.mark.parametrize(("moved", "column"), [(0.0, "owner"), (3.0, "owner"), (0.0, "member")])
def test_listed_records_are_asked_and_judged_if_they_are_alike(
    tmp_path: Path, moved: float, column: str
) -> None:
    written = write_first_plan(request(tmp_path, moved=moved, column=column), HERE)
    assert "loss_membership" in written.attacks
    recording = tmp_path / "recording"
    found = audit(written.plan, tmp_path / "out", recording=recording, resources=HERE)
    (result,) = [
        one
        for arm in found.arm_results
        for one in arm.threat_results
        if one.question == "membership"
    ]
    assert result.target_kind == ("cohort" if column == "member" else "clients")
    auc = {
        one.headline_row.attack: one.headline_row.value.mean for one in result.attack_results
    }
    if moved:
        assert result.verdict == "not enough to judge"
        assert "with an AUC of 1.00" in result.judgement.why
        assert "overheard canaries" in result.judgement.why
    else:
        # 50 examples with 70 inputs: each is fitted by its client, and none of the others is.
        # The mean of three clients remembers less.
        is_cohort = column == "member"
        assert max(auc.values()) > (0.53 if is_cohort else 0.6)
        assert result.verdict == "leaks" or (is_cohort and result.verdict == "inconclusive")
    assert "tells members from outsiders" in found.subject


@pytest.mark.slow
def test_records_that_differ_get_scores_of_attacks_that_train_nothing(
    tmp_path: Path,
) -> None:
    recording = tmp_path / "recording"
    given = request(tmp_path, moved=3.0, column="owner")
    source = Own(
        str(given.data),
        task="regression",
        scale="as_written",
        candidates=given.candidates,
    )
    threat = ThreatPlan(
        attacks=(LossMembership(), GradientMembership(models=8)), by_round=False
    )
    plan = Plan(
        data=DataPlan(source=source, auxiliary=50),
        training=TrainingPlan(
            model=OwnModel(f"{__name__}:Line"), rounds=2, rate=0.03, loss="squared_error"
        ),
        threats=(threat,),
    )
    checked = check_plan(plan, HERE, recording, with_estimate=False)
    able = {one.part: one.able_count for one in checked.attacks}
    assert able == {"loss_membership": CLIENTS, "gradient_membership": 0}
    said = " ".join(checked.missing_verdicts)
    assert "Scores are reported without a verdict" in said
    assert "only claims on the membership of the listed records are checked" in said
    assert "p-value" not in said
    printed = StringIO()
    print_missing_verdicts(plan, recording, Console(file=printed, width=1000), HERE)
    assert set(printed.getvalue().splitlines()) == set(checked.missing_verdicts)
    found = audit(plan, tmp_path / "out", recording=recording, resources=HERE)
    assert {one.cell.attack.partition(",")[0] for one in found.findings} == {"loss_membership"}
    (why,) = {one.missing for one in found.refusals}
    assert "no verdict could follow" in why[0]
    assert "overheard canaries" in why[0]


def test_a_list_in_a_table_is_on_the_scale_of_the_data(tmp_path: Path) -> None:
    spare = "\n".join(
        f"{number % 25 + 20},{'ab'[number % 2]},{number % 2}" for number in range(50)
    )
    (tmp_path / "spare.csv").write_text(f"age,ward,label\n{spare}")
    (tmp_path / "records.csv").write_text("label,ward,age,owner\n1,a,20,client/0\n0,b,40,\n")
    source = Own(str(tmp_path / "spare.csv"), candidates=str(tmp_path / "records.csv"))
    dataset = source.load(None)
    assert len(dataset.train) + len(dataset.test) == 50
    assert dataset.listed is not None
    assert dataset.listed.members == {client(0): (0,)}
    records = dataset.listed.records
    assert records.labels.tolist() == [1, 0]
    age, ward_a, ward_b = records.inputs.T.tolist()
    assert (ward_a, ward_b) == ([1, 0], [0, 1])
    plain = Own(str(tmp_path / "spare.csv")).load(None)
    assert torch.equal(plain.train.inputs, dataset.train.inputs), "the list changes no scale"
    # Both ages are on the line of the training examples: 20 years are 20 steps of one year.
    years = plain.train.inputs[:, 0].sort().values
    step = (years[-1] - years[0]) / 24
    assert age[1] - age[0] == pytest.approx(20 * float(step), rel=0.05)


def test_a_record_is_listed_once_with_a_class_of_the_data(tmp_path: Path) -> None:
    (tmp_path / "spare.csv").write_text("age,label\n" + "\n".join(["20,0", "30,1"] * 9))
    (tmp_path / "records.csv").write_text("age,label,owner\n20,0,0\n20,1,\n20,0,\n")
    source = Own(str(tmp_path / "spare.csv"), candidates=str(tmp_path / "records.csv"))
    with pytest.raises(DataError, match=r"records\.csv: 1 of 3 .* record 3, .* as record 1:"):
        source.load(None)
    (tmp_path / "records.csv").write_text("age,label,owner\n20,7,0\n20,1,\n")
    with pytest.raises(DataError, match=r"records\.csv: holds the label '7', which is no"):
        source.load(None)


def test_owners_are_named_by_clients_or_numbers() -> None:
    path = Path("records.csv")
    owners = members_of_cells(path, "owner", ["0", "client/1", "", "None", "0"])
    assert owners == {client(0): (0, 4), client(1): (1,)}
    assert members_of_cells(path, "member", ["1", "0", "true"]) == {COHORT: (0, 2)}
    with pytest.raises(DataError, match="lists 2 members and 0 outsiders"):
        members_of_cells(path, "owner", ["0", "1"])
    with pytest.raises(DataError, match="must be 1"):
        members_of_cells(path, "member", ["1", "maybe"])


def test_owners_are_named_as_the_app_names_its_clients(tmp_path: Path) -> None:
    recording = tmp_path / "recording"
    recorded(recording)
    transcript = open_transcript(recording)
    records = without_classes(torch.zeros(4, INPUTS), torch.zeros(4, 1))
    task = Task((INPUTS,), ("days",), kind="regression")

    def owners(*names: str) -> RecordOwners | None:
        members = members_of_cells(Path("records.csv"), "owner", [*names, "none"])
        truth = read_recorded_truth(
            recording,
            transcript,
            task.classes,
            DataPartition(records, (), records, records, {}),
            is_external=True,
            listed=ListedRecords(records, members),
        )
        assert truth is not None
        return truth.facts.get(RecordOwners)

    names = recording / "node_names.json"
    names.write_text('{"client/0": "7", "client/1": "north", "client/2": "both"}')
    assert owners("7", "north", "client/0") == RecordOwners(
        {client(0): (0, 2), client(1): (1,)}
    )
    names.write_text('{"client/0": "both", "client/1": "both"}')
    with pytest.raises(TranscriptError, match="names both as owner"):
        owners("both")
    names.write_text("[7]")
    with pytest.raises(TranscriptError, match="must be a JSON object with a name for each"):
        owners("7")


def test_a_classifier_of_records_alone_finds_what_differs() -> None:
    task = Task((2,), ("days",), kind="regression")
    draws = torch.randn(80, 2, generator=Seed(0).generator())
    numbers = draws.sum(1, keepdim=True)
    members = {COHORT: tuple(range(40))}
    shift = torch.cat((torch.zeros(40, 1), torch.full((40, 1), 3.0)))
    labelled = ListedRecords(without_classes(draws, numbers + shift), members)
    found = measure_record_difference(labelled, task)
    assert found.of_members is not None
    assert found.of_members.mean > 0.9
    few = ListedRecords(without_classes(draws[:9], numbers[:9]), {COHORT: (0, 1)})
    found = measure_record_difference(few, task)
    assert found.of_members is None
    assert not found.is_small("cohort")
    assert "too few" in found.sentence("cohort")


def test_records_are_classified_once_and_anew_after_any_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    task = Task((2,), ("days",), kind="regression")
    inputs = torch.randn(40, 2, generator=Seed(1).generator())
    labels, members = inputs.sum(1, keepdim=True), {COHORT: tuple(range(20))}
    fit, fitted = record_difference._cross_validated_chances, list[int]()

    def counted(numbers: np.ndarray, groups: np.ndarray) -> Any:
        fitted.append(len(numbers))
        return fit(numbers, groups)

    monkeypatch.setattr(record_difference, "_cross_validated_chances", counted)
    monkeypatch.setattr(record_difference, "_KEPT", {})
    first = measure_record_difference(
        ListedRecords(without_classes(inputs, labels), members), task
    )
    same = ListedRecords(without_classes(inputs.clone(), labels.clone()), dict(members))
    assert measure_record_difference(same, task) == first
    assert len(fitted) == 1
    moved = inputs.clone()
    moved[0, 0] += 1
    measure_record_difference(ListedRecords(without_classes(moved, labels), members), task)
    others = {COHORT: tuple(range(1, 21))}
    measure_record_difference(ListedRecords(without_classes(inputs, labels), others), task)
    assert len(fitted) == 3


def finding_about(target: Party, listed: ListedRecords) -> Finding:
    """Return a claim that gives all records the same score."""
    true = np.full(len(listed.records), -1.0)
    for owner, rows in listed.members.items():
        true[list(rows)] = 1.0 if target in (owner, COHORT) else 0.0
    cell = Cell("recorded", 0, (SERVER,), "loss", "Loss()", "membership", (0,))
    claimed = ClaimRow((0.0,) * len(true))
    score = Score("membership_auc", 0.5, "higher", {"a coin": 0.5}, {})
    return Finding(cell, (target,), claimed, ClaimRow(tuple(true.tolist())), (score,))


def list_of_clients(inputs: Tensor, labels: Tensor, members: int) -> ListedRecords:
    """Return a list whose first records are those of three clients, the others of nobody."""
    each = members // CLIENTS
    owned = {client(one): tuple(range(one * each, (one + 1) * each)) for one in range(CLIENTS)}
    return ListedRecords(Examples(inputs, labels), owned)


TWO_WARDS = Task((4,), ("one", "other"))


@pytest.mark.slow
def test_a_fair_list_of_clients_with_other_labels_is_judged() -> None:
    # Clients have 90 %, 50 % and 10 % of a label, on which the inputs depend. Outsiders have
    # half of each, as all members together.
    shares = torch.tensor([0.9, 0.5, 0.1]).repeat_interleave(40)
    labels = torch.cat((torch.bernoulli(shares, generator=Seed(1).generator()).long(),
                        torch.arange(200) % 2))  # fmt: skip
    inputs = torch.randn(320, 4, generator=Seed(2).generator()) + 3 * labels[:, None]
    found = measure_record_difference(list_of_clients(inputs, labels, 120), TWO_WARDS)
    assert found.is_small("clients"), found
    assert found.is_small("cohort"), found


@pytest.mark.slow
def test_a_list_whose_outsiders_differ_within_a_label_is_not_judged() -> None:
    labels = torch.arange(320) % 2
    inputs = torch.randn(320, 4, generator=Seed(3).generator()) + 3 * labels[:, None]
    inputs[120:] += 3  # another hospital measures higher numbers
    found = measure_record_difference(list_of_clients(inputs, labels, 120), TWO_WARDS)
    assert not found.is_small("clients")
    assert not found.is_small("cohort")


@pytest.mark.slow
def test_clients_that_differ_within_a_label_are_judged_together_alone() -> None:
    # Each client measures other numbers, and a third of the outsiders are like each of them.
    labels = torch.arange(360) % 2
    own = torch.arange(3).repeat_interleave(40)
    kinds = torch.cat((own, own.repeat(2)))
    inputs = torch.randn(360, 4, generator=Seed(4).generator()) + 3 * kinds[:, None]
    listed = list_of_clients(inputs, labels, 120)
    found = measure_record_difference(listed, TWO_WARDS)
    assert not found.is_small("clients")
    assert found.is_small("cohort"), found
    run = ArmRun("recorded", 0, (), {}, 0, 0, record_difference=found)
    run = replace(run, record_labels=tuple(labels.tolist()), record_exchange="same label")
    whys = {
        target: re_pair_owners([finding_about(target, listed)], [run], Seed(0)).why_none
        for target in (client(0), COHORT)
    }
    assert "one client's records from outsiders of their label" in whys[client(0)]
    assert 'ask about them together (about = "cohort")' in whys[client(0)]
    assert not whys[COHORT]
    sources = re_pair_sources([finding_about(client(0), listed)], [run], Seed(0))
    assert "style alone could tell who holds a record" in sources.why_none


def test_a_list_is_for_recordings(tmp_path: Path) -> None:
    wrong = FirstPlanRequest(candidates="records.npz")
    with pytest.raises(PlanError, match="records of a recorded run"):
        write_first_plan(wrong, HERE)
