"""Changed code, data and stores."""

import importlib
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from overheard.auditing import program
from overheard.auditing.cells.claim_store import read_cell_claims
from overheard.auditing.folder import AuditFolder
from overheard.auditing.program import cell_code, resolve_plan, resolve_recording
from overheard.auditing.progress import ProgressStep
from overheard.auditing.subject import TRUSTED
from overheard.core.errors import AuditError, OutputError
from overheard.core.parties import SERVER
from overheard.data.dataset import DataSource
from overheard.data.datasets.custom import Own
from overheard.disk.digests import TRUST_VARIABLE
from overheard.findings.audit import Audit
from overheard.learning.models.transformer import Transformer
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan
from overheard.questions.label_shares.attacks.bias_inversion import BiasInversion
from overheard.questions.label_shares.attacks.mean_softmax import MeanSoftmax
from overheard.questions.label_shares.claim import LabelShares
from tests.auditing.conftest import FinishedAudit, audit_here
from tests.auditing.plans import DATA, SECURE_AGGREGATION, TINY, TRAINING, replace_tables

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
    found = audit_here(plan, folder, rerun=rerun)
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


FUNCTION = """
import numpy
def load():
    with numpy.load("function.npz") as file:
        return file["x"], file["y"]
"""


Write = Callable[[int], None]
"""Writes other data for each number, and the same for the same number."""


@pytest.fixture
def data_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "data_of_mine.py").write_text(FUNCTION)
    importlib.invalidate_caches()
    yield tmp_path
    sys.modules.pop("data_of_mine", None)


def write_arrays(name: str, number: int) -> None:
    labels = np.arange(600) % 10
    inputs = np.random.default_rng(number).normal(size=(600, 64)).astype("f4")
    inputs[np.arange(600), labels] += 3
    np.savez(name, x=inputs.reshape(-1, 1, 8, 8), y=labels)


def write_table(number: int) -> None:
    lines = [
        f"{label},{label + one / 100},{one * number}"
        for one in range(60)
        for label in range(10)
    ]
    lines[number] = "5,5,5"
    Path("spare.csv").write_text("\n".join(("label,a,b", *lines)))


SOURCES: dict[str, tuple[DataSource, Write]] = {
    "spare.npz": (Own("spare.npz"), lambda number: write_arrays("spare.npz", number)),
    "spare.csv": (Own("spare.csv"), write_table),
    "data_of_mine:load": (
        Own("data_of_mine:load"),
        lambda number: write_arrays("function.npz", number),
    ),
}


def cells(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.glob("cells/*")}


def run_audit(plan: Plan, folder: str, *, rerun: bool = False, **more: Path) -> Audit:
    return audit_here(plan, Path(folder), rerun=rerun, **more)


@pytest.mark.parametrize("name", SOURCES)
def test_a_simulation_with_other_data_is_refused_by_the_name_of_the_data(
    data_home: Path, name: str
) -> None:
    source, write = SOURCES[name]
    plan = replace_tables(TINY, data=TINY.data.model_copy(update={"source": source}))
    write(1)
    first = run_audit(plan, "audit")
    before = cells(data_home / "audit")
    assert before
    write(1)  # the same content, with another time
    assert run_audit(plan, "audit") == first
    assert cells(data_home / "audit") == before
    write(2)
    with pytest.raises(OutputError, match=rf"other data made .*changed: {name}\).*--rerun"):
        run_audit(plan, "audit")
    assert cells(data_home / "audit") == before
    again = run_audit(plan, "audit", rerun=True)
    assert again.findings == run_audit(plan, "fresh").findings != first.findings


def test_claims_about_a_recording_are_made_anew_from_other_data(
    data_home: Path, recording: Path
) -> None:
    source, write = SOURCES["spare.npz"]
    # The run's own data stay; the attackers' examples are those of a file.
    threat = TINY.threats[0].model_copy(update={"auxiliary_from": source})
    plan = replace_tables(TINY, threats=(threat,))
    write(1)
    first = run_audit(plan, "audit", recording=recording)
    before = cells(data_home / "audit")
    write(1)
    assert run_audit(plan, "audit", recording=recording) == first
    assert cells(data_home / "audit") == before
    write(2)
    again = run_audit(plan, "audit", recording=recording)
    assert again.findings == run_audit(plan, "fresh", recording=recording).findings
    assert again.findings != first.findings


def test_runs_stay_if_only_the_attackers_data_change(data_home: Path) -> None:
    source, write = SOURCES["spare.npz"]
    threat = TINY.threats[0].model_copy(update={"auxiliary_from": source})
    plan = replace_tables(TINY, threats=(threat,))
    write(1)
    first = run_audit(plan, "audit")
    write(2)
    again = run_audit(plan, "audit")
    assert again.findings != first.findings
    assert [replace(one, seconds=None) for one in again.arms] == [
        replace(one, seconds=None) for one in first.arms
    ]


STORED = {
    "claims": "cells/*",
    "a broadcast": "runs/*/transcript/rounds/r0000/*broadcast*",
    "an update": "runs/*/transcript/rounds/r0001/*client-1*",
    "messages": "runs/*/transcript/rounds/r0001/messages.jsonl",
    "the truth": "runs/*/truth.json",
    "the manifest": "runs/*/transcript/manifest.json",
}


def alter(path: Path) -> None:
    """Change a digit of the last number of a text, or the last bit of the numbers."""
    content = bytearray(path.read_bytes())
    places = [place for place, one in enumerate(content) if chr(one).isdigit()]
    place = places[-1] if path.suffix.startswith(".json") else len(content) - 1
    content[place] ^= 1
    path.write_bytes(content)


@pytest.fixture
def stored_home(tiny: FinishedAudit, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny.folder, tmp_path / "tiny"))


@pytest.mark.parametrize("stored", STORED)
def test_an_altered_file_ends_the_audit_with_its_name(
    stored_home: Path, tiny: FinishedAudit, stored: str
) -> None:
    path = sorted(stored_home.glob(STORED[stored]))[0]
    if "transcript/rounds" in str(path):
        shutil.rmtree(stored_home / "cells")  # else nothing reads them
    alter(path)
    with pytest.raises(AuditError, match=f"{path} was altered .*--trust-store"):
        audit_here(TINY, stored_home)
    shutil.copy(tiny.folder / path.relative_to(stored_home), path)
    assert audit_here(TINY, stored_home) == tiny.audit


def test_a_round_that_was_altered_before_its_run_is_complete_is_named(tmp_path: Path) -> None:
    def stop(step: ProgressStep) -> None:
        if next(tmp_path.glob("runs/*/transcript/rounds/r0000/messages.jsonl"), None):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        audit_here(TINY, tmp_path, on_step=stop)
    (path,) = tmp_path.glob("runs/*/transcript/rounds/r*/messages.jsonl")
    alter(path)
    with pytest.raises(AuditError, match=f"{path} was altered .*--trust-store"):
        audit_here(TINY, tmp_path)


def test_a_store_that_is_trusted_is_read_and_the_audit_says_so(
    stored_home: Path, tiny: FinishedAudit, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = sorted(stored_home.glob(STORED["an update"]))[0]
    shutil.rmtree(stored_home / "cells")
    alter(path)
    monkeypatch.setenv(TRUST_VARIABLE, "1")
    found = audit_here(TINY, stored_home)
    assert found.findings != tiny.audit.findings
    assert found.data_warnings == (*tiny.audit.data_warnings, TRUSTED)
    # Its claims are not those of an audit that compares.
    monkeypatch.delenv(TRUST_VARIABLE)
    with pytest.raises(AuditError, match="was altered"):
        audit_here(TINY, stored_home)
    shutil.copy(tiny.folder / path.relative_to(stored_home), path)
    assert audit_here(TINY, stored_home) == tiny.audit


def other_content(path: Path) -> None:
    path.write_bytes(path.read_bytes())


@pytest.mark.parametrize("touch", [Path.touch, other_content])
def test_files_with_another_time_are_used(
    stored_home: Path, tiny: FinishedAudit, touch: Callable[[Path], None]
) -> None:
    for path in stored_home.rglob("*"):
        if path.is_file():
            touch(path)
    before = {path: path.stat().st_mtime_ns for path in stored_home.glob("cells/*")}
    assert audit_here(TINY, stored_home) == tiny.audit
    assert {path: path.stat().st_mtime_ns for path in stored_home.glob("cells/*")} == before


def test_claims_of_an_audit_of_other_data_are_made_anew(
    stored_home: Path, tiny: FinishedAudit, tmp_path: Path
) -> None:
    data = TINY.data.model_copy(update={"examples": (31, 40)})
    audit_here(replace_tables(TINY, data=data), tmp_path / "other")
    for path in (stored_home / "cells").iterdir():
        # Its name is that of the cell, which is the same in both audits.
        shutil.copy(tmp_path / "other" / "cells" / path.name, path)
    found = audit_here(TINY, stored_home)
    assert replace(found, made_on="") == replace(tiny.audit, made_on="")
