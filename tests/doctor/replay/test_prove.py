import re
from pathlib import Path

import pytest

from overheard.core.errors import PlanError
from overheard.doctor.criticism import Diagnosis
from overheard.doctor.replay.clients import Code
from overheard.doctor.replay.prove import prove_here
from overheard.doctor.replay.stated_claim import NOTHING_STATED, StatedClaim

HERE = Path(__file__).parent


def prove(client: str, claim: StatedClaim = NOTHING_STATED, **config: str) -> Diagnosis:
    return prove_here(Code(f"tests.doctor.replay.{client}", HERE, config=config), claim).diagnosis


def critical(diagnosis: Diagnosis) -> set[str]:
    return {
        one.rule.id.removeprefix("proof-")
        for one in diagnosis.criticisms
        if one.rule.severity == "critical"
    }


def test_a_right_trainer_has_no_critical_fault_and_all_is_seen():
    found = prove("trainers:train")
    assert critical(found) == set()
    assert found.unseen == ()
    assert {"proof-sensitivity", "proof-noise-scale"} <= {one.id for one in found.passed}
