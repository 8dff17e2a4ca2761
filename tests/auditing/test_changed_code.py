"""After a change of a plugin's source, an audit computes just the cells of that plugin anew."""

import importlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from overheard.auditing import program
from overheard.auditing.cells.claim_store import read_cell_claims
from overheard.auditing.folder import AuditFolder
from overheard.auditing.program import cell_code, resolve_plan, resolve_recording
from overheard.auditing.run import audit
from overheard.core.errors import OutputError
from overheard.core.parties import SERVER
from overheard.findings.audit import Audit
from overheard.learning.models.transformer import Transformer
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan
from overheard.questions.label_shares.attacks.bias_inversion import BiasInversion
from overheard.questions.label_shares.attacks.mean_softmax import MeanSoftmax
from overheard.questions.label_shares.claim import LabelShares
from tests.auditing.conftest import HERE
from tests.auditing.plans import DATA, SECURE_AGGREGATION, TRAINING

PLUGINS = {
    "guess_of_mine": """
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final
import torch
from overheard.core.attack import Attack
from overheard.core.needs import UPDATES, Need
from overheard.questions.label_shares.claim import LabelShares
@final
@dataclass(frozen=True, slots=True)
class Guess(Attack[LabelShares]):
    name: ClassVar[str] = "guess_of_mine"
    claim_type: ClassVar[type[LabelShares]] = LabelShares
    needs: ClassVar[frozenset[Need]] = frozenset({UPDATES})
    source: ClassVar[str] = "test"
    def infer(self, view, targets, knowledge, seed):
        shares = torch.full((10,), 0.1)
        shares[LABEL] = 0.2
        return {target: LabelShares(shares / shares.sum()) for target in targets}
""",
    "scale_of_mine": """
from dataclasses import dataclass, replace
from typing import ClassVar, final
from overheard.core.defense import Defense
from overheard.core.mechanism import Site
@final
@dataclass(frozen=True, slots=True)
class Scale(Defense):
    name: ClassVar[str] = "scale_of_mine"
    source: ClassVar[str] = "test"
    enforced_at: ClassVar[Site] = "client"
    switched_off_by: ClassVar[str] = "each client"
    def on_update(self, update, context):
        return replace(update, delta={n: FACTOR * one for n, one in update.delta.items()})
    def promise(self, run):
        return "none"
""",
}

ALL = {
    "no defense: guess_of_mine",
    "no defense: bias_inversion",
    "scaled: guess_of_mine",
    "scaled: bias_inversion",
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(tmp_path)
    # Bytecode of a source of the same size and second would be taken for that of the new one.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path
    for name in PLUGINS:
        sys.modules.pop(name, None)


def load_plan(home: Path, *, label: int = 0, factor: int = 1) -> Plan:
    """Write the plugins with these constants, load them, and return a plan with both."""
    for name, source in PLUGINS.items():
        text = source.replace("LABEL", str(label)).replace("FACTOR", str(factor))
        (home / f"{name}.py").write_text(text)
        sys.modules.pop(name, None)
        importlib.invalidate_caches()
    guess = importlib.import_module("guess_of_mine").Guess()
    scale = importlib.import_module("scale_of_mine").Scale()
    return Plan(
        data=DATA,
        training=TRAINING,
        arms=(ArmPlan(name="no defense"), ArmPlan(name="scaled", defenses=(scale,))),
        threats=(ThreatPlan(attacks=(BiasInversion(), guess), by_round=False),),
    )


def audit_and_list(home: Path, plan: Plan, *, rerun: bool = False) -> tuple[Audit, set[str]]:
    """Audit the plan; return its results, and the arm and attack of each computed cell."""
    folder = home / "audit"
    before = {path: path.stat().st_mtime_ns for path in folder.glob("cells/*")}
    found = audit(plan, folder, resources=HERE, rerun=rerun)
    cells = [
        read_cell_claims(path, LabelShares).cell
        for path in folder.glob("cells/*")
        if before.get(path) != path.stat().st_mtime_ns
    ]
    return found, {f"{cell.arm}: {cell.part}" for cell in cells}


def claims(found: Audit, arm: str, attack: str) -> list[tuple[float, ...]]:
    return [
        one.claimed.numbers
        for one in found.findings
        if (one.cell.arm, one.cell.part) == (arm, attack)
    ]


@pytest.mark.slow
def test_a_changed_attack_is_computed_anew_and_nothing_else(home: Path):
    first, cells = audit_and_list(home, load_plan(home))
    assert cells == ALL
    assert audit_and_list(home, load_plan(home)) == (first, set())
    changed, cells = audit_and_list(home, load_plan(home, label=3))
    assert cells == {"no defense: guess_of_mine", "scaled: guess_of_mine"}
    assert claims(first, "scaled", "guess_of_mine")[0][0] == pytest.approx(0.2 / 1.1)
    assert claims(changed, "scaled", "guess_of_mine")[0][3] == pytest.approx(0.2 / 1.1)
    assert len(list((home / "audit" / "cells").iterdir())) == len(ALL)


@pytest.mark.slow
def test_runs_of_a_changed_defense_are_refused_until_asked_for(home: Path):
    first, _ = audit_and_list(home, load_plan(home))
    run = AuditFolder(home / "audit").run_path("scaled", 0)
    changed = load_plan(home, factor=2)
    with pytest.raises(
        OutputError, match=r"changed: scale_of_mine\): train it anew with --rerun"
    ):
        audit_and_list(home, changed)
    assert audit_and_list(home, load_plan(home)) == (first, set())

    found, cells = audit_and_list(home, load_plan(home, factor=2), rerun=True)
    assert cells == {"scaled: guess_of_mine", "scaled: bias_inversion"}
    name = "bias_inversion"
    assert claims(found, "scaled", name) != claims(first, "scaled", name)
    assert claims(found, "no defense", name) == claims(first, "no defense", name)
    assert run.is_dir()
    # From now on it is the run of this code.
    assert audit_and_list(home, load_plan(home, factor=2)) == (found, set())


def test_a_run_that_does_not_state_its_code_is_refused(home: Path):
    plan = load_plan(home)
    audit_and_list(home, plan)
    (AuditFolder(home / "audit").run_path("scaled", 0) / "origin.json").write_text("[]")
    with pytest.raises(OutputError, match="it is not known which"):
        audit_and_list(home, plan)


def test_threats_that_differ_by_their_observers_share_the_digests_of_an_attack(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = list[str]()

    def ask(question: object, plugins: Sequence[object]) -> str:
        asked.append(repr(plugins[-1]))
        return cell_code(question, plugins)

    monkeypatch.setattr(program, "cell_code", ask)
    threats = (
        ThreatPlan(attacks=(BiasInversion(),), observers=("client/*",)),
        ThreatPlan(attacks=(BiasInversion(), MeanSoftmax())),
    )
    plan = Plan(title="t", data=DATA, training=TRAINING, seeds=(0, 1), threats=threats)
    cells = [cell for run in resolve_plan(plan, {"digits": "12"}).runs for cell in run.attacks]
    # Three clients and the server, and once more the server, under two seeds.
    assert len(cells) == 2 * (DATA.clients + 2)
    assert asked == [repr(BiasInversion()), repr(MeanSoftmax())]
    assert len({cell.code for cell in cells}) == 2
    assert all(", run " in cell.code for cell in cells)


def test_a_file_that_a_setting_of_a_plugin_names_counts_by_its_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    threat = ThreatPlan(attacks=(BiasInversion(),))
    model = Transformer(base="base.safetensors")
    training = TRAINING.model_copy(update={"model": model})
    plan = Plan(title="t", data=DATA, training=training, threats=(threat,))
    found = []
    for content in (b"one", b"one", b"two"):
        Path("base.safetensors").write_bytes(content)
        run = resolve_plan(plan, {"digits": "12"}).runs[0]
        found.append((run.attacks[0].code, run.origin))
    assert found[0] == found[1]
    assert found[0][0] != found[2][0]
    differing = {name for name, one in found[0][1].items() if found[2][1][name] != one}
    assert differing == {"data base.safetensors"}
    assert found[0][1]["data digits"] == "12"


def test_claims_depend_on_data_arm_and_recording_and_simulations_on_data_alone() -> None:
    threat = ThreatPlan(attacks=(BiasInversion(),))
    plan = Plan(title="t", data=DATA, training=TRAINING, threats=(threat,))

    def codes(changed: Plan, data: str = "12", recording: str = "") -> tuple[str, str]:
        parties = (SERVER,)
        run = resolve_recording(
            changed, changed.arms[0], (0,), parties, {"digits": data}, recording
        )
        return run.attacks[0].code, run.attacks[0].simulation_code

    code, simulation = codes(plan)
    for other in (codes(plan, data="13"), codes(plan, recording="a")):
        assert other[0] != code
    assert codes(plan, data="13")[1] != simulation
    assert codes(plan, recording="a")[1] == simulation
    longer = plan.model_copy(
        update={"training": TRAINING.model_copy(update={"rounds": 3}), "title": "t"}
    )
    assert codes(longer)[0] != code
    assert codes(longer)[1] == simulation
    # Further seeds and arms change nothing of the arm.
    more = plan.model_copy(update={"seeds": (0, 1), "arms": (*plan.arms, SECURE_AGGREGATION)})
    assert codes(more) == (code, simulation)
