import pytest
import torch

from overheard.core.examples import Examples
from overheard.core.parties import COHORT, RELEASE, SERVER, client
from overheard.questions.membership.estimators.record_logits import (
    label_log_odds,
    read_record_logits,
)
from overheard.testing.planted_runs.planted_membership import (
    ROUNDS,
    MembershipRun,
    build,
    simulate_membership,
)


@pytest.fixture(scope="module")
def run() -> MembershipRun:
    return simulate_membership(memorised=True)


def read(run: MembershipRun, most_rounds: int = 6):
    view = run.transcript.seen_by(SERVER)
    return view, read_record_logits(view, (client(0),), run.knowledge, most_rounds)


def test_confidence_is_the_log_odds_of_the_true_label() -> None:
    chances = torch.tensor([[0.7, 0.2, 0.1], [0.5, 0.25, 0.25]])
    records = Examples(torch.zeros(2, 1), torch.tensor([0, 1]))
    told = label_log_odds(chances.log(), records)
    expected = [torch.tensor(0.7 / 0.3).log().item(), torch.tensor(0.25 / 0.75).log().item()]
    assert told.tolist() == pytest.approx(expected, rel=1e-6)
    assert (
        label_log_odds(torch.stack([chances.log()] * 3), records)[2].tolist() == told.tolist()
    )


def test_reads_the_updated_model_of_the_target(run) -> None:
    view, readings = read(run)
    start, update = view.broadcasts()[1], view.updates(client(0))[1]
    model = build()
    model.load_state_dict({name: start[name] + update.delta[name] for name in start})
    expected = model(run.knowledge.candidate_records.inputs).detach()
    assert readings.targets[client(0)][1].allclose(expected, atol=1e-5)
    assert readings.rounds == (0, 1)


def test_reads_the_last_round_if_only_one_is_allowed(run) -> None:
    assert read(run, most_rounds=1)[1].rounds == (ROUNDS - 1,)


def test_the_final_model_is_read_where_nothing_else_can_be(run) -> None:
    view = run.transcript.seen_by(RELEASE)
    readings = read_record_logits(view, (COHORT,), run.knowledge, 6)
    ((number, weights),) = view.models_after().items()
    model = build()
    model.load_state_dict(dict(weights))
    expected = model(run.knowledge.candidate_records.inputs).detach()
    assert readings.rounds == (number,)
    assert readings.targets[COHORT][number].allclose(expected, atol=1e-5)


def test_nothing_is_read_of_a_single_client_without_its_updates(run) -> None:
    view = run.transcript.seen_by(RELEASE)
    assert read_record_logits(view, (client(0),), run.knowledge, 6).targets[client(0)] == {}
