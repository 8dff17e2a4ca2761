from pathlib import Path

import pytest

from overheard.auditing.inputs import Resources
from overheard.auditing.run import audit
from overheard.core.errors import TranscriptError
from overheard.core.parties import SERVER, client
from overheard.papers.decaf.benchmark import DecafBenchmark
from overheard.papers.decaf.plans import DecafSize, build_plan
from overheard.papers.runs import ExperimentRuns
from overheard.plans.plan import UNDEFENDED
from overheard.questions.label_shares.attacks.mean_softmax import MeanSoftmax


def test_opens_the_transcript_of_a_run(
    tiny_benchmark: DecafBenchmark, tiny_size: DecafSize, tmp_path: Path
) -> None:
    one = build_plan(tiny_benchmark, tiny_size, (MeanSoftmax(),))
    done = audit(one, tmp_path / "first", resources=Resources(engine="sequential"))
    runs = ExperimentRuns({"first": done}, {"first": one}, tmp_path)
    view = runs.transcript("first", UNDEFENDED, 0).seen_by(SERVER)
    assert set(view.updates(client(9))) == {0, 1}
    with pytest.raises(TranscriptError):
        runs.transcript("first", UNDEFENDED, 1)
