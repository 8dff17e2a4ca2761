"""Several labels or numbers in place of a class: every attack runs, or says why not."""

from dataclasses import fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pytest

from overheard.auditing.canaries import draw_canaries
from overheard.core.attack import Attack
from overheard.core.errors import PlanError
from overheard.core.parties import client
from overheard.core.recipe import LOSSES_OF_TASKS
from overheard.core.task import OUTPUTS_OF, UTILITIES, TaskKind
from overheard.data.datasets.custom import Own
from overheard.data.partition.candidates import CandidateSettings
from overheard.data.partition.known_user_settings import KnownUserSettings
from overheard.data.partition.schedule import DataShift
from overheard.data.splits.by_user import ByUser
from overheard.data.splits.dirichlet import Dirichlet
from overheard.data.splits.iid import Iid
from overheard.defenses.class_balanced import ClassBalanced
from overheard.defenses.label_smoothing import LabelSmoothing
from overheard.findings.audit import Audit
from overheard.findings.finding import Finding
from overheard.learning.distillation.methods.flip import Flip
from overheard.learning.models.mlp import Mlp
from overheard.learning.models.text_bag import TextBag
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan, TrainingPlan
from overheard.plans.registries import ATTACKS
from overheard.plans.virtual_plan import VirtualPlan
from overheard.report.page import render_page
from overheard.report.show import show
from tests.auditing.conftest import HERE, audit_here

pytestmark = pytest.mark.slow

COLUMNS = {"regression": ("level",), "multi_label": ("warm", "loud", "late")}
"""The columns to predict."""

QUICK = MappingProxyType(
    {
        "pairs": 64,
        "epochs": 2,
        "steps": 20,
        "most_rounds": 2,
        "models": 8,
        "in_models": 2,
        "trend": 2,
    }
)
"""Settings that make any attack quick that has them."""

SETTINGS = MappingProxyType(
    {
        "attribute_forest": {"told": "everyone"},
        "attribute_mlp": {"told": "everyone"},
        "gradient_membership": {"trainings": 1},
        "prolin": {"samples": 10},
        "shadow_membership": {"stumps": 5},
        "shift": {"simulated_runs": 8},
    }
)
"""Settings of single attacks."""

RUN = Path("runs", "no_defense-seed0")
"""The folder of the run in that of the audit."""

LINKING = ("link_siamese", "link_wccn", "metadata_link")
"""Attacks on updates whose senders have no lasting names."""

NEED_CLASSES = frozenset(
    {
        "amortised",
        "base_membership",
        "bias_inversion",
        "class_geometry",
        "decaf",
        "distilled_labels",
        "ilrg",
        "ldia",
        "llg",
        "mean_softmax",
        "ppa",
        "ramakrishna",
        "rmia",
        "shift_tracking",
        "whispers",
        "zlg",
        "sum_shares",
    }
)
"""Attacks that need a task with classes."""

NEED_OTHERS = frozenset({"combined_rows", "embedding_rows", "match_cross_modal", "output_rows"})
"""Attacks that need what these data lack: words, or a second modality."""


def write_table(folder: Path, kind: TaskKind) -> Own:
    """Eight users with forty rows each; the numbers and labels follow the inputs."""
    draws = np.random.default_rng(0)
    user = np.repeat(np.arange(8), 40)
    inputs = draws.normal(size=(320, 4)) + 0.5 * draws.normal(size=(8, 4))[user]
    hidden = inputs @ draws.normal(size=(4, 3)) + 0.1 * draws.normal(size=(320, 3))
    table = pd.DataFrame(inputs, columns=list("abcd"))
    table["user"] = [f"user-{number}" for number in user]
    table["hand"] = np.where(user % 2 == 0, "left", "right")
    first, *more = COLUMNS[kind]
    for place, name in enumerate((first, *more)):
        table[name] = hidden[:, place] if kind == "regression" else hidden[:, place] > 0
        table[name] = table[name].astype(float)
    path = folder / f"{kind}.csv"
    table.to_csv(path, index=False)
    return Own(
        str(path),
        label=first,
        more_labels=tuple(more),
        user="user",
        attributes=("hand",),
        task=kind,
    )


def quick_attack(name: str) -> Attack[Any]:
    """The attack of this name with settings that make it quick."""
    plugin = ATTACKS.plugins()[name]
    quick = {one.name: QUICK[one.name] for one in fields(plugin) if one.name in QUICK}
    return plugin(**quick | SETTINGS.get(name, {}))


def plan_of(source: Own, kind: TaskKind) -> Plan:
    """A plan whose attacks are all of them, under lasting names and under pseudonyms."""
    attacks = {name: quick_attack(name) for name in ATTACKS.plugins()}
    linking = tuple(attacks.pop(name) for name in LINKING)
    threat = ThreatPlan(
        attacks=tuple(attacks.values()),
        knows=("auxiliary", "model", "recipe"),
        virtual=VirtualPlan(clients=16),
        by_round=False,
    )
    return Plan(
        data=DataPlan(
            source=source,
            split=ByUser(),
            clients=5,
            examples=12,
            auxiliary=40,
            people=KnownUserSettings(prior="random"),
            candidates=CandidateSettings(members=4, outsiders=20),
        ),
        training=TrainingPlan(
            model=Mlp(hidden=(6,)), rounds=5, rate=0.1, batch=6, loss=LOSSES_OF_TASKS[kind][0]
        ),
        threats=(
            threat,
            threat.model_copy(update={"attacks": linking, "pseudonyms": "round"}),
        ),
    )


@pytest.fixture(scope="module", params=["regression", "multi_label"])
def kind(request: pytest.FixtureRequest) -> TaskKind:
    """The kind of task."""
    return request.param


@pytest.fixture(scope="module")
def plan(kind: TaskKind, tmp_path_factory: pytest.TempPathFactory) -> Plan:
    """The plan of all attacks."""
    return plan_of(write_table(tmp_path_factory.mktemp("table"), kind), kind)


@pytest.fixture(scope="module")
def out(kind: TaskKind, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of its audit."""
    return tmp_path_factory.mktemp(kind) / "out"


@pytest.fixture(scope="module")
def found(plan: Plan, out: Path) -> Audit:
    """Its audit."""
    return audit_here(plan, out)


def key_of(finding: Finding) -> tuple[str, str]:
    """The attack and the target of a finding."""
    return finding.cell.part, finding.target


def names(cells: object) -> set[str]:
    """The attacks of findings or refusals."""
    return {one.cell.part for one in cells}


def test_every_attack_runs_or_says_that_it_needs_classes(found: Audit):
    attacks = set(ATTACKS.plugins())
    assert names(found.findings) == attacks - NEED_CLASSES - NEED_OTHERS
    reasons = {
        one.cell.part: one.missing for one in found.refusals if one.cell.part in NEED_CLASSES
    }
    assert reasons.keys() == NEED_CLASSES
    assert all("a task with classes" in why[0] for why in reasons.values())
    other = {one.cell.part for one in found.refusals} - NEED_CLASSES
    assert other == NEED_OTHERS  # no attack ran on some targets and failed on others


def test_its_report_names_the_utility_of_the_task(found: Audit, kind: TaskKind):
    run = next(one for one in found.arms if not one.is_control)
    assert run.utility == UTILITIES[kind]
    assert 0 < run.accuracy[5] <= 1
    page = render_page(found)
    assert run.utility.capitalize() in page
    assert "Accuracy" not in page.partition("Glossary")[0].replace(run.utility, "")


def test_a_recording_is_audited_like_the_simulated_run(
    found: Audit, plan: Plan, out: Path, tmp_path: Path
):
    asked = ("loss_membership", "reidentify_wccn", "mean_softmax", "shift")
    (threat, _) = plan.threats
    attacks = tuple(one for one in threat.attacks if one.name in asked)
    again = plan.model_copy(
        update={"threats": (threat.model_copy(update={"attacks": attacks}),)}
    )
    recorded = audit_here(again, tmp_path / "out", recording=out / RUN)
    simulated = {
        key_of(one): one.claimed.numbers for one in found.findings if not one.cell.is_control
    }
    assert names(recorded.findings) == set(asked) - {"mean_softmax"}
    assert names(recorded.refusals) == {"mean_softmax"}
    for one in recorded.findings:
        assert one.claimed.numbers == pytest.approx(simulated[key_of(one)], abs=1e-5)


def test_a_recording_of_another_kind_is_refused(
    found: Audit, plan: Plan, out: Path, kind: TaskKind, tmp_path: Path
):
    other: TaskKind = "multi_label" if kind == "regression" else "regression"
    loss = LOSSES_OF_TASKS[other][0]
    changed = plan.model_copy(
        update={
            "data": plan.data.model_copy(update={"source": write_table(tmp_path, other)}),
            "training": plan.training.model_copy(update={"loss": loss}),
        }
    )
    with pytest.raises(PlanError, match=f"has a {kind} task"):
        audit_here(changed, tmp_path / "out", recording=out / RUN)


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"data": {"split": Dirichlet()}}, "split dirichlet deals classes .* choose iid"),
        ({"data": {"auxiliary_per_class": 3, "auxiliary": None}}, "set auxiliary instead"),
        ({"data": {"people": KnownUserSettings(prior="profile")}}, "choose 'random'"),
        ({"data": {"people": KnownUserSettings(per_label=2)}}, "leave it out"),
        ({"training": {"loss": "cross_entropy"}}, "training.loss: cross_entropy does not fit"),
        (
            {"arms": (ArmPlan(name="a", defenses=(ClassBalanced(),)),)},
            "class_balanced: it need",
        ),
        (
            {"arms": (ArmPlan(name="a", defenses=(LabelSmoothing(0.1),)),)},
            "label_smoothing: it needs the loss cross_entropy",
        ),
        ({"arms": (ArmPlan(name="a", distillation=Flip()),)}, "makes examples of each class"),
    ],
)
def test_settings_that_mean_classes_are_refused_with_a_mend(
    plan: Plan, tables: dict[str, Any], message: str, tmp_path: Path
):
    if "data" in tables and "people" not in tables["data"]:
        tables = {"data": {**tables["data"], "people": None}}
    changed = {
        name: value if name == "arms" else getattr(plan, name).model_copy(update=value)
        for name, value in tables.items()
    }
    asked = tuple(one for one in plan.threats[0].attacks if one.name == "loss_membership")
    threats = (plan.threats[0].model_copy(update={"attacks": asked}),)
    small = plan.model_copy(update={"threats": threats, **changed})
    with pytest.raises(PlanError, match=message):
        audit_here(small, tmp_path / "out")


def test_shifts_of_inputs_work_and_shifts_of_classes_are_refused(plan: Plan, tmp_path: Path):
    asked = tuple(one for one in plan.threats[0].attacks if one.name == "shift")
    threats = (plan.threats[0].model_copy(update={"attacks": asked}),)

    def shifted(shift: DataShift) -> Plan:
        data = plan.data.model_copy(
            update={"shifts": (shift,), "people": None, "candidates": None, "examples": (8, 8)}
        )
        return plan.model_copy(update={"threats": threats, "data": data})

    found = audit_here(shifted(DataShift(0, 3, distortion=0.8)), tmp_path / "a")
    assert {one.target for one in found.findings} >= {client(0)}
    with pytest.raises(PlanError, match="shift by distortion or new_user"):
        audit_here(shifted(DataShift(0, 3, shares=(1.0,))), tmp_path / "b")


def test_canaries_keep_their_numbers_and_what_is_shown_names_the_outputs(
    found: Audit, plan: Plan, out: Path, kind: TaskKind, tmp_path: Path
):
    data = plan.data.model_copy(
        update={
            "people": None,
            "candidates": CandidateSettings(members=4, outsiders=20, canaries="labelled"),
        }
    )
    drawn = draw_canaries(plan.model_copy(update={"data": data}), tmp_path, resources=HERE)
    with np.load(drawn.files[client(0)]) as arrays:
        assert arrays["y"].shape == (drawn.counts[client(0)], len(COLUMNS[kind]))
        assert arrays["y"].dtype == np.float32
    shown = str(show(out / RUN))
    assert OUTPUTS_OF[kind] in shown
    assert ", ".join(COLUMNS[kind]) in shown


def test_words_are_read_from_texts_without_classes(kind: TaskKind, tmp_path: Path):
    draws = np.random.default_rng(0)
    words = [f"word{number}" for number in range(30)]
    table = pd.DataFrame({"text": [" ".join(draws.choice(words, 6)) for _ in range(120)]})
    first, *more = COLUMNS[kind]
    for name in (first, *more):
        table[name] = draws.integers(0, 2, size=120).astype(float)
    table.to_csv(tmp_path / "texts.csv", index=False)
    source = Own(
        str(tmp_path / "texts.csv"),
        label=first,
        text="text",
        tokens=6,
        task=kind,
        more_labels=tuple(more),
    )
    plan = Plan(
        data=DataPlan(source=source, split=Iid(), clients=3, examples=8, auxiliary=30),
        training=TrainingPlan(
            model=TextBag(dim=4, hidden=4), rounds=2, rate=0.1, loss=LOSSES_OF_TASKS[kind][0]
        ),
        threats=(
            ThreatPlan(
                attacks=(
                    quick_attack("embedding_rows"),
                    quick_attack("combined_rows"),
                    quick_attack("output_rows"),
                    quick_attack("mean_softmax"),
                ),
                by_round=False,
            ),
        ),
    )
    found = audit_here(plan, tmp_path / "out")
    assert names(found.findings) == {"combined_rows", "embedding_rows"}
    assert names(found.refusals) == {"mean_softmax", "output_rows"}
