"""Judgements of stored claims are equal to the stored ones, to the byte."""

import pytest

from tests.golden.audits import claim_names, names, small
from tests.golden.claims import claims_of
from tests.golden.files import JUDGEMENTS, as_text, claim_changes, judgement_changes
from tests.golden.judgements import judged_audit, judgement_of, near_levels
from tests.golden.stored_audits import load_audit, stored_names


@pytest.mark.slow
@pytest.mark.parametrize("name", names())
def test_the_same_judgement_follows_from_stored_claims(name: str) -> None:
    judgement = judgement_of(judged_audit(load_audit(name)))
    changes = judgement_changes(name, judgement)
    assert not changes, "\n".join([f"{name}: {len(changes)} changes", *changes])
    assert (JUDGEMENTS / f"{name}.json").read_text("utf-8") == as_text(judgement.values)
    assert (JUDGEMENTS / f"{name}.txt").read_text("utf-8") == judgement.page
    assert not near_levels(judgement)


@pytest.mark.parametrize("name", claim_names())
def test_listed_claims_are_those_of_the_stored_audit(name: str) -> None:
    claims = claims_of(judged_audit(load_audit(small(name))))
    assert not claim_changes(name, claims, lambda old, new: old == new)


def test_each_plan_has_a_stored_audit_and_each_audit_a_plan() -> None:
    assert stored_names() == sorted(names())
