"""Small audits made anew claim what is stored, to a tolerance, and refuse in the same words."""

from pathlib import Path

import pytest

from tests.golden.audits import claim_names, make_audit, small
from tests.golden.claims import are_alike, claims_of
from tests.golden.files import claim_changes
from tests.golden.judgements import judged_audit


@pytest.mark.slow
@pytest.mark.parametrize("name", claim_names())
def test_attacks_claim_what_they_claimed(name: str, tmp_path: Path) -> None:
    claims = claims_of(judged_audit(make_audit(small(name), tmp_path)))
    changes = claim_changes(name, claims, are_alike)
    assert not changes, "\n".join([f"{name}: {len(changes)} changes", *changes])
