"""How golden audits are made: from plans, of simulated runs, recordings and imports."""

import json
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest.mock import patch

from overheard.archive.layout import count_committed_rounds
from overheard.archive.run_end import mark_end
from overheard.auditing.canaries import draw_canaries
from overheard.auditing.folder import AuditFolder
from overheard.auditing.following.follow import FollowEvents, FollowSettings, follow_recording
from overheard.auditing.following.round_attacker import FollowedRound
from overheard.auditing.inputs import Resources
from overheard.auditing.judging.judge import AttackedRun, AuditSubject, judge
from overheard.auditing.run import audit
from overheard.findings.audit import Audit
from overheard.plans.plan import UNDEFENDED, Plan, read_plan
from overheard.recorders.folder_import import import_recording
from tests.auditing.following.growing_copy import GrowingCopy
from tests.golden.stored_audits import AttackedAudit

PLANS = Path(__file__).parent / "plans"

CLAIM_PLANS, JUDGEMENT_PLANS = PLANS / "claims", PLANS / "judgements"

ONE_PROCESS = Resources(device="cpu", workers=1)

Make = Callable[[Plan, Path], None]
"""Makes the audit of a plan in an empty folder; what it judges last is its result."""

EXPORT_INFO = """\
framework = "by hand"
class_names = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]
input_shape = [1, 8, 8]

[recipe]
rate = {rate}
epochs = {epochs}
batch = {batch}
"""


def claim_names() -> list[str]:
    """Return the names of the small audits whose claims are stored."""
    return sorted(path.stem for path in CLAIM_PLANS.glob("*.toml"))


def names() -> list[str]:
    """Return the names of all golden audits, the small ones first."""
    large = sorted(path.stem for path in JUDGEMENT_PLANS.glob("*.toml"))
    return [*map(small, claim_names()), *large]


def small(name: str) -> str:
    """Return the name of a small audit among all audits."""
    return f"small_{name}"


def make_audit(name: str, folder: Path) -> AttackedAudit:
    """Make the golden audit with this name in an empty folder; return what it judged."""
    is_small = name.startswith("small_")
    path = CLAIM_PLANS / f"{name.removeprefix('small_')}.toml"
    plan = read_plan(path if is_small else JUDGEMENT_PLANS / f"{name}.toml")
    judged = list[AttackedAudit]()

    def keep_and_judge(subject: AuditSubject, runs: Iterable[AttackedRun]) -> Audit:
        attacked = tuple(
            replace(
                run, claims=tuple(replace(one, cells=tuple(one.cells)) for one in run.claims)
            )
            for run in runs
        )
        judged.append(AttackedAudit(subject, attacked))
        return judge(subject, attacked)

    with (
        patch("overheard.auditing.run.judge", keep_and_judge),
        patch("overheard.auditing.following.round_attacker.judge", keep_and_judge),
    ):
        SPECIAL.get(name, audit_simulated)(plan, folder)
    return judged[-1]


def audit_simulated(plan: Plan, folder: Path) -> None:
    """Simulate the runs of a plan and audit them."""
    audit(plan, folder / "audit", resources=ONE_PROCESS)


def audit_recorded(
    plan: Plan,
    folder: Path,
    arm: str = UNDEFENDED,
    *,
    change: Callable[[Path], None] | None = None,
) -> None:
    """Simulate the first run of an arm and audit it as a recording, which may be changed."""
    recording = _record(plan, folder, arm)
    if change is not None:
        change(recording)
    audit(plan, folder / "audit", recording=recording, resources=ONE_PROCESS)


def remove_truth(recording: Path) -> None:
    """Remove the ground truth of a recording."""
    (recording / "truth.json").unlink()


def overstate_noise(recording: Path) -> None:
    """State more noise in a recording than it has."""
    path = recording / "transcript" / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    manifest["defenses"][0]["mechanism"]["noise_multiplier"] = 30.0
    path.write_text(json.dumps(manifest), encoding="utf-8")


def audit_imported(plan: Plan, folder: Path, *, has_truth: bool) -> None:
    """Simulate a run, save its weights as another framework would, import and audit them."""
    recording, exported = _record(plan, folder, UNDEFENDED), folder / "exported"
    for source in sorted((recording / "transcript" / "rounds").iterdir()):
        target = exported / f"round-{int(source.name[1:]):04d}"
        target.mkdir(parents=True)
        for file in source.glob("*.safetensors"):
            words = file.stem.split("-")
            name = "global" if words[1] == "server" else "-".join(words[1:3])
            shutil.copy(file, target / f"{name}.safetensors")
    training = plan.training
    info = EXPORT_INFO.format(rate=training.rate, epochs=training.epochs, batch=training.batch)
    (exported / "about.toml").write_text(info, encoding="utf-8")
    imported = folder / "imported"
    import_recording(exported, imported, kind="differences")
    if has_truth:
        draw_canaries(plan, folder / "canaries", resources=ONE_PROCESS)
        shutil.copy(folder / "canaries" / "truth.json", imported)
    audit(plan, folder / "audit", recording=imported, resources=ONE_PROCESS)


def audit_followed(plan: Plan, folder: Path) -> None:
    """Attack a recording while it grows, until its last round."""
    recording = _record(plan, folder, UNDEFENDED)
    growing = GrowingCopy(recording, folder / "growing")
    last = count_committed_rounds(recording) - 1

    def go_on(followed: FollowedRound) -> None:
        if followed.number == 0:
            growing.reveal_truth()
        growing.commit_round(followed.number + 1)
        if followed.number + 1 == last:
            mark_end(growing.folder)

    follow_recording(
        plan,
        folder / "audit",
        growing.folder,
        FollowEvents(lambda: growing.commit_round(0), go_on),
        resources=ONE_PROCESS,
        settings=FollowSettings(timeout=60.0, pause=0.01),
    )


def _record(plan: Plan, folder: Path, arm: str) -> Path:
    """Simulate the first run of an arm; return the folder of its transcript and truth."""
    simulated = folder / "simulated"
    audit(plan.model_copy(update={"seeds": plan.seeds[:1]}), simulated, resources=ONE_PROCESS)
    run, recording = AuditFolder(simulated).run_path(arm, plan.seeds[0]), folder / "recording"
    shutil.copytree(run / "transcript", recording / "transcript")
    shutil.copy(run / "truth.json", recording)
    return recording


SPECIAL: Mapping[str, Make] = {
    "small_recorded": audit_recorded,
    "small_imported": partial(audit_imported, has_truth=True),
    "small_followed": audit_followed,
    "recorded_with_truth": partial(audit_recorded, arm="local DP"),
    "recorded_without_truth": partial(audit_recorded, arm="local DP", change=remove_truth),
    "recorded_falsely": partial(audit_recorded, arm="local DP", change=overstate_noise),
    "recorded_masks": partial(audit_recorded, arm="masks"),
    "imported_without_truth": partial(audit_imported, has_truth=False),
}
"""How audits are made that are not of simulated runs."""
