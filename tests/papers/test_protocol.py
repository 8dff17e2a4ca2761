import pytest

from overheard.auditing.supplies import Resources
from overheard.papers.decaf.benchmark import DecafBenchmark
from overheard.papers.decaf.plans import DecafSize, plan
from overheard.papers.figure import Figure
from overheard.papers.protocol import ProtocolExperiment, ProtocolPanel
from overheard.questions.label_shares.attacks.mean_softmax import MeanSoftmax
from overheard.questions.label_shares.attacks.ramakrishna import Ramakrishna

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def figures(
    tiny_benchmark: DecafBenchmark,
    tiny_size: DecafSize,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Figure]:
    attacks = (MeanSoftmax(), Ramakrishna(form="auxiliary_gradient"))
    one = plan(tiny_benchmark, tiny_size, attacks)
    experiment = ProtocolExperiment(
        "top1",
        "",
        "",
        (ProtocolPanel("Digits", one, one, published=0.9),),
        ("top1", "top3"),
        "higher",
    )
    run = experiment.run(
        tmp_path_factory.mktemp("top1"),
        quick=True,
        resources=Resources(engine="sequential"),
        on_step=None,
    )
    assert len({one.name for one in run}) == len(run)
    return {one.name: one for one in run}


def test_each_attack_is_told_together_and_by_round(figures: dict[str, Figure]) -> None:
    # 2 attacks, 2 scores, 2 rounds and both together; and the guess's 2 scores.
    assert len(figures) == 14
    assert {
        "digits_attack_1_mean_softmax_top1_all_rounds",
        "digits_attack_2_ramakrishna_top3_round_2",
    } <= figures.keys()


def test_what_was_published_stands_beside_the_first_attack_alone(
    figures: dict[str, Figure],
) -> None:
    told = {name: one.published for name, one in figures.items() if one.published is not None}
    assert told == {"digits_attack_1_mean_softmax_top1_all_rounds": 0.9}


def test_one_who_heard_nothing_names_the_largest_of_ten_classes_by_luck(
    figures: dict[str, Figure],
) -> None:
    # 1/10 where one class is the largest; of users 1 and 10 several are, which is easier.
    assert 0.1 <= figures["digits_uniform_top1"].ours < 0.3
