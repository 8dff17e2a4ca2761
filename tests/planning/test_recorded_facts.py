"""The facts of a recording are those of the run."""

from pathlib import Path

from overheard.auditing.inputs import Resources
from overheard.auditing.simulate import simulate
from overheard.planning.recorded_facts import read_checked_recording
from tests.auditing.plans import SECURE_AGGREGATION, TINY, replace_tables


def test_the_sender_of_an_aggregate_is_no_client(tmp_path: Path):
    plan = replace_tables(TINY, arms=(SECURE_AGGREGATION,))
    simulate(
        plan,
        arm=SECURE_AGGREGATION.name,
        folder=tmp_path,
        resources=Resources(device="cpu", workers=1),
    )
    facts = read_checked_recording(tmp_path)
    assert facts.clients == TINY.data.clients
    assert not facts.reads_updates
