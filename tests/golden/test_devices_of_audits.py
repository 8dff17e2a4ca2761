"""Small audits have the same verdicts wherever they train; see tests/pretended_device.py."""

from dataclasses import replace
from pathlib import Path

import pytest

from overheard.findings.audit import Audit
from tests.golden import audits
from tests.golden.audits import ONE_PROCESS, claim_names, make_audit, small
from tests.golden.judgements import judged_audit, judgement_of
from tests.golden.rounding import Json
from tests.golden.stored_audits import load_audit
from tests.pretended_device import device_under_test


def verdicts(audit: Audit) -> dict[str, Json]:
    """Return the verdict on each threat, by its name."""
    rows = judgement_of(audit).values["verdicts"]
    return {name: row["verdict"] for name, row in rows.items() if isinstance(row, dict)}


@pytest.mark.nightly
@pytest.mark.parametrize("name", claim_names())
def test_audits_on_another_device_have_the_same_verdicts(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with device_under_test() as device:
        there = replace(ONE_PROCESS, device=str(device))
        monkeypatch.setattr(audits, "ONE_PROCESS", there)
        found = judged_audit(make_audit(small(name), tmp_path))
    assert verdicts(found) == verdicts(judged_audit(load_audit(small(name))))
