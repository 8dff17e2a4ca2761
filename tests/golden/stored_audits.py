"""What is stored of an audit, from which its judgement follows, as files.

This is the one place that knows the format of these files. What differs between two runs of an
audit without a change of its results is left out here: times, days and versions.
"""

import lzma
from dataclasses import replace
from pathlib import Path

from pydantic import ConfigDict, TypeAdapter
from pydantic.dataclasses import dataclass

from overheard.archive.run_time import RunTime
from overheard.findings.audit import Audit
from overheard.findings.finding import ArmRun

FOLDER = Path(__file__).parent / "inputs"

DAY = "2026-01-15"


@dataclass(frozen=True, config=ConfigDict(extra="forbid", ser_json_inf_nan="constants"))
class _Stored:
    audit: Audit


_STORED = TypeAdapter(_Stored)


def stored_names() -> list[str]:
    """Return the names of all stored audits."""
    return sorted(path.name.partition(".")[0] for path in FOLDER.glob("*.json.xz"))


def pack_audit(audit: Audit) -> bytes:
    """Return the content of the file of an audit: what its judgement needs."""
    document = _STORED.dump_json(_Stored(without_times(audit)))
    return lzma.compress(document, preset=9 | lzma.PRESET_EXTREME)


def store_packed(name: str, packed: bytes) -> None:
    """Write the file of an audit."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.json.xz").write_bytes(packed)


def load_audit(name: str) -> Audit:
    """Read the stored audit with this name."""
    return read_audit((FOLDER / f"{name}.json.xz").read_bytes())


def read_audit(packed: bytes) -> Audit:
    """Read an audit from the bytes of its file."""
    return _STORED.validate_json(lzma.decompress(packed)).audit


def without_times(audit: Audit) -> Audit:
    """Return the audit with fixed times, a fixed day, no versions, and no verdicts yet."""
    arms = tuple(_with_fixed_time(number, run) for number, run in enumerate(audit.arms))
    return replace(audit, arms=arms, made_on=DAY, versions={}, arm_results=())


def _with_fixed_time(number: int, run: ArmRun) -> ArmRun:
    return replace(run, seconds=None if run.seconds is None else RunTime(10.0 + number, None))
