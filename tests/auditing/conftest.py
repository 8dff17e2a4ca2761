"""Audits that run once and that many tests inspect."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from overheard.auditing.folder import AuditFolder
from overheard.auditing.inputs import AuditInputs, Resources, load_inputs
from overheard.auditing.progress import ProgressStep
from overheard.auditing.run import audit
from overheard.core.compute_settings import MemoryTensorCache
from overheard.findings.audit import Audit
from overheard.plans.plan import Plan
from tests.auditing.plans import SMALL, TINY

HERE = Resources(device="cpu", workers=1)


@dataclass(frozen=True)
class FinishedAudit:
    """An audit, its folder and its progress steps."""

    audit: Audit
    folder: Path
    steps: tuple[ProgressStep, ...]


def audit_here(plan: Plan, folder: Path, **settings: Any) -> Audit:
    """Audit on one worker and the CPU."""
    return audit(plan, folder, resources=HERE, **settings)


def inputs_for(plan: Plan) -> AuditInputs:
    """Return the inputs of this plan's audit, with a cache in memory."""
    return load_inputs(plan, HERE, MemoryTensorCache())


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> FinishedAudit:
    """The small plan, audited. Look at its folder, change nothing in it."""
    folder, steps = tmp_path_factory.mktemp("audits") / "small", list[ProgressStep]()
    found = audit_here(SMALL, folder, on_step=steps.append)
    return FinishedAudit(found, folder, tuple(steps))


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> FinishedAudit:
    """The tiny plan, audited. Copy its folder before changing anything in it."""
    folder, steps = tmp_path_factory.mktemp("audits") / "tiny", list[ProgressStep]()
    found = audit_here(TINY, folder, on_step=steps.append)
    return FinishedAudit(found, folder, tuple(steps))


@pytest.fixture(scope="session")
def recording(tiny: FinishedAudit) -> Path:
    """The folder of the one run of the tiny plan: transcript and truth."""
    return AuditFolder(tiny.folder).run_path("no defense", 0)
