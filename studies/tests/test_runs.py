from pathlib import Path

import pytest

from overheard.auditing.inputs import Resources
from overheard.auditing.run import audit
from overheard.core.errors import TranscriptError
from overheard.core.parties import SERVER, client
from overheard.defenses.dropout import Dropout
from overheard.plans.plan import UNDEFENDED, ArmPlan
from overheard.questions.label_shares.attacks.bias_inversion import BiasInversion
from overheard.questions.label_shares.attacks.mean_softmax import MeanSoftmax
from overheard_studies.decaf.setting import DecafBenchmark, DecafSize, build_plan
from overheard_studies.runs import StudyRuns, describe_origin


def test_audits_with_different_seeds_are_combined_by_those_that_all_have(
    tiny_benchmark: DecafBenchmark, tiny_size: DecafSize, tmp_path: Path
) -> None:
    one = build_plan(tiny_benchmark, tiny_size, (MeanSoftmax(),))
    seeds = {"first": (4, 0, 1), "second": (0, 2, 4), "third": (7,)}
    plans = {name: one.model_copy(update={"seeds": some}) for name, some in seeds.items()}
    runs = StudyRuns({}, plans, tmp_path)
    assert runs.common_seeds(("first", "second")) == (4, 0)
    assert runs.common_seeds(("first", "second", "third")) == ()
    assert runs.common_seeds(("third",)) == (7,)
    shared = runs.with_common_seeds(("first", "second"))
    assert {name: plan.seeds for name, plan in shared.plans.items()} == {
        "first": (4, 0),
        "second": (4, 0),
        "third": (7,),
    }


def test_opens_the_transcript_of_a_run(
    tiny_benchmark: DecafBenchmark, tiny_size: DecafSize, tmp_path: Path
) -> None:
    one = build_plan(tiny_benchmark, tiny_size, (MeanSoftmax(),))
    done = audit(one, tmp_path / "first", resources=Resources(engine="sequential"))
    runs = StudyRuns({"first": done}, {"first": one}, tmp_path)
    view = runs.transcript("first", UNDEFENDED, 0).seen_by(SERVER)
    assert set(view.updates(client(9))) == {0, 1}
    with pytest.raises(TranscriptError):
        runs.transcript("first", UNDEFENDED, 1)


def test_the_origin_of_a_result_names_the_plans_their_plugins_and_the_module(
    tiny_benchmark: DecafBenchmark, tiny_size: DecafSize
) -> None:
    plan = build_plan(tiny_benchmark, tiny_size, (MeanSoftmax(),))
    module = "overheard.questions.shift.scorer"
    before = describe_origin([plan], module)
    assert before == describe_origin([plan], module)

    def is_same_code(other: str) -> bool:
        return other.splitlines()[0] == before.splitlines()[0]

    assert not is_same_code(describe_origin([plan], "overheard.questions.words.scorer"))
    more = plan.model_copy(update={"seeds": (7, 8, 9)})
    of_more = describe_origin([more], module)
    assert is_same_code(of_more)
    assert of_more != before
    assert describe_origin([plan, more], module) not in {before, of_more}
    assert is_same_code(
        describe_origin([build_plan(tiny_benchmark, tiny_size, (BiasInversion(),))], module)
    )
    arm = ArmPlan(name="dropout", defenses=(Dropout(),))
    defended = plan.model_copy(update={"arms": (*plan.arms, arm)})
    assert not is_same_code(describe_origin([defended], module))
