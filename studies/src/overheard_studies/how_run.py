"""How the values of a study were measured: code, day, seeds, size, device and time."""

import subprocess
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import torch
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass as checked_dataclass

from overheard.findings.number_format import format_number
from overheard.learning.devices.choice import DeviceName, choose_device
from overheard.plans.plan import Plan
from overheard_studies.setting_description import describe_size

CHECKOUT = Path(__file__).parents[3]

UNCOMMITTED = "-dirty"
"""End of a commit's hash if files of the checkout were changed since."""

SHORT_COMMIT = 8
"""Characters of a hash that tables show."""

SECONDS_OF_AN_HOUR = 3600.0


@checked_dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid", strict=True))
class HowRun:
    """How values were measured.

    Args:
        commit: git hash of the checkout, with `UNCOMMITTED` at its end if files were changed
            since; "" = there is no checkout.
        date: day, such as "2026-11-22".
        seeds: seeds of the runs; () = those that measurements have of their own.
        size: number and size of the audits, in words.
        device: device and float type, such as "cpu, float32".
        core_seconds: CPU seconds of all commands in the folder; None = unknown.

    """

    commit: str
    date: str
    seeds: tuple[int, ...]
    size: str
    device: str
    core_seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None

    @property
    def short_commit(self) -> str:
        """The first characters of the commit."""
        dirty = UNCOMMITTED if self.commit.endswith(UNCOMMITTED) else ""
        return self.commit[:SHORT_COMMIT] + dirty

    def facts(self, paper_size: str) -> Mapping[str, str]:
        """Return all that is known, in words, with the size in the paper."""
        spent = self.core_seconds
        facts = {
            "Size here": self.size,
            "Size in the paper": paper_size,
            "Seeds": ", ".join(map(str, self.seeds)),
            "Commit": self.commit,
            "Run on": f"{self.date}, {self.device}",
            "Core hours": "" if spent is None else format_number(spent / SECONDS_OF_AN_HOUR),
        }
        return {name: fact for name, fact in facts.items() if fact}


def describe_run(
    plans: Collection[Plan],
    seeds: tuple[int, ...],
    size: str,
    device: DeviceName,
    core_seconds: float | None,
) -> HowRun:
    """Return how audits, or measurements without an audit, were run just now.

    Args:
        plans: plans of the audits.
        seeds: seeds of measurements without an audit.
        size: what was run of the study, such as "2 of 3 audits".
        device: name of the device.
        core_seconds: CPU seconds that it took.

    """
    return HowRun(
        read_commit(CHECKOUT),
        f"{datetime.now(UTC):%Y-%m-%d}",
        tuple(sorted({seed for plan in plans for seed in plan.seeds} | set(seeds))),
        ", ".join([size, *([describe_size(plans)] if plans else [])]),
        f"{_devices(device)}, {torch.get_default_dtype()}".replace("torch.", ""),
        core_seconds,
    )


def _devices(name: DeviceName) -> str:
    """Return the devices that may have trained, in words."""
    chosen = choose_device(name).type
    return chosen if name != "auto" or chosen == "cpu" else f"cpu and {chosen}"


def read_commit(checkout: Path) -> str:
    """Return the hash of a checkout's commit; "" if there is no checkout or no git."""
    if not (checkout / ".git").exists():
        return ""
    asked = [
        "git",
        "describe",
        "--always",
        "--abbrev=40",
        "--exclude=*",
        f"--dirty={UNCOMMITTED}",
    ]
    try:
        done = subprocess.run(asked, cwd=checkout, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()
