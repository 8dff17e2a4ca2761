"""An audit draws the pictures of claims only if its plan asks for them, and says where."""

from pathlib import Path

import pytest
import torch

from overheard.cli.audit_and_report import audit_and_report
from overheard.core.claims import Picture
from overheard.plans.release_plan import ReportPlan
from overheard.questions.label_shares.claim import LabelShares
from tests.auditing.conftest import HERE
from tests.auditing.plans import TINY, replace_tables


def test_a_plan_that_asks_for_pictures_after_the_audit_gets_those_of_the_stored_claims(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LabelShares, "pictures", lambda _: (Picture("x", torch.eye(2)[None]),))
    page = tmp_path / "pictures.html"
    asking = replace_tables(TINY, report=ReportPlan(pictures=True))
    for plan, is_asked in ((TINY, False), (asking, True), (TINY, False)):
        said = audit_and_report(plan, tmp_path, HERE, None, rerun=False, quiet=True)
        assert page.exists() == is_asked
        assert any(str(page) in one for one in said) == is_asked
        assert b"data:image" not in (tmp_path / "report.html").read_bytes()
