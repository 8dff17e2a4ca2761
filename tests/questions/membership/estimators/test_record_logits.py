import pytest
import torch

from overheard.core.examples import Examples, without_classes
from overheard.core.known_facts.candidate_records import candidate_records
from overheard.core.parties import COHORT, RELEASE, SERVER, client
from overheard.questions.membership.checks import build, simulate_membership
from overheard.questions.membership.estimators.record_logits import (
    read_record_logits,
    record_confidence,
)
from overheard.testing.trial import PlantedRun


@pytest.fixture(scope="module")
def run() -> PlantedRun:
    return simulate_membership(memorised=True)


def read(run: PlantedRun, most_rounds: int = 6):
    view = run.transcript.seen_by(SERVER)
    return view, read_record_logits(view, (client(0),), run.knowledge, most_rounds)


def test_confidence_is_the_log_odds_of_the_true_label() -> None:
    chances = torch.tensor([[0.7, 0.2, 0.1], [0.5, 0.25, 0.25]])
    records = Examples(torch.zeros(2, 1), torch.tensor([0, 1]))
    told = record_confidence(chances.log(), records, "classification")
    expected = [torch.tensor(0.7 / 0.3).log().item(), torch.tensor(0.25 / 0.75).log().item()]
    assert told.tolist() == pytest.approx(expected, rel=1e-6)
    thrice = record_confidence(torch.stack([chances.log()] * 3), records, "classification")
    assert thrice[2].tolist() == told.tolist()


def test_confidence_in_several_labels_is_the_log_odds_that_all_are_right() -> None:
    # Probabilities of 3/4 that the first label applies and 1/2 that the second does: all are
    # right with 3/8 each, which are odds of 3 to 5.
    logits = torch.tensor([[[3.0, 1.0]]]).log()
    several = without_classes(torch.zeros(1, 1), torch.tensor([[1.0, 0.0]]))
    (told,) = record_confidence(logits, several, "multi_label").flatten().tolist()
    assert told == pytest.approx(torch.tensor(3 / 5).log().item())
    sure = record_confidence(torch.tensor([[800.0, -800.0]]), several, "multi_label")
    assert bool(sure.isfinite().all())


def test_confidence_in_a_number_falls_with_its_error() -> None:
    numbers = without_classes(torch.zeros(3, 1), torch.tensor([[1.0], [1.0], [1.0]]))
    outputs = torch.tensor([[3.0], [2.0], [1.0]])  # squared errors of 4, 1 and 0
    told = record_confidence(outputs, numbers, "regression")
    assert told[:2].tolist() == pytest.approx([-torch.tensor(4.0).log().item(), 0.0])
    assert told[1] < told[2] < 100


def test_reads_the_updated_model_of_the_target(run) -> None:
    view, readings = read(run)
    start, update = view.broadcasts()[1], view.updates(client(0))[1]
    model = build()
    model.load_state_dict({name: start[name] + update.delta[name] for name in start})
    expected = model(candidate_records(run.knowledge).inputs).detach()
    assert readings.targets[client(0)][1].allclose(expected, atol=1e-5)
    assert readings.rounds == (0, 1)


def test_the_final_model_is_read_where_nothing_else_can_be(run) -> None:
    view = run.transcript.seen_by(RELEASE)
    readings = read_record_logits(view, (COHORT,), run.knowledge, 6)
    ((number, weights),) = view.models_after().items()
    model = build()
    model.load_state_dict(dict(weights))
    expected = model(candidate_records(run.knowledge).inputs).detach()
    assert readings.rounds == (number,)
    assert readings.targets[COHORT][number].allclose(expected, atol=1e-5)


def test_nothing_is_read_of_a_single_client_without_its_updates(run) -> None:
    view = run.transcript.seen_by(RELEASE)
    assert read_record_logits(view, (client(0),), run.knowledge, 6).targets[client(0)] == {}
