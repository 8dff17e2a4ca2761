from dataclasses import replace

import pytest
import torch

from overheard.bank.record_readings import confidence, read_records, with_shadows
from overheard.core.examples import Examples
from overheard.core.messages import Update
from overheard.core.parties import SERVER, client
from overheard.core.seeds import Seed
from tests.attacks.planted_membership import EACH, ROUNDS, Remembered, build, federate_records


@pytest.fixture(scope="module")
def run() -> Remembered:
    return federate_records(by_heart=True)


def read(run: Remembered, most_rounds: int = 6):
    view = run.transcript.seen_by(SERVER)
    return view, read_records(view, (client(0),), run.knowledge, most_rounds)


def test_confidence_is_the_log_odds_of_the_true_label() -> None:
    chances = torch.tensor([[0.7, 0.2, 0.1], [0.5, 0.25, 0.25]])
    records = Examples(torch.zeros(2, 1), torch.tensor([0, 1]))
    told = confidence(chances.log(), records)
    expected = [torch.tensor(0.7 / 0.3).log().item(), torch.tensor(0.25 / 0.75).log().item()]
    assert told.tolist() == pytest.approx(expected, rel=1e-6)
    assert confidence(torch.stack([chances.log()] * 3), records)[2].tolist() == told.tolist()


def test_what_is_read_is_the_model_at_which_a_target_arrived(run) -> None:
    view, readings = read(run)
    start, update = view.broadcasts()[1], view.updates(client(0))[1]
    model = build()
    model.load_state_dict({name: start[name] + update.delta[name] for name in start})
    expected = model(run.knowledge.candidates.inputs).detach()
    assert readings.targets[client(0)][1].allclose(expected, atol=1e-5)
    assert readings.rounds == (0, 1)


def test_of_fewer_rounds_the_last_is_read(run) -> None:
    assert read(run, most_rounds=1)[1].rounds == (ROUNDS - 1,)


def test_shadow_models_have_the_records_that_they_learned_from_by_heart(run) -> None:
    view, readings = read(run)
    told = with_shadows(readings, view, run.knowledge, 6, asked=True, seed=Seed(1))
    assert told.inside.shape == (6, len(run.knowledge.candidates))
    assert told.shadows.keys() == {0, 1}
    sure = confidence(told.shadows[1], run.knowledge.candidates)
    assert float(sure[told.inside].mean()) > float(sure[~told.inside].mean()) + 2
    assert len(set(map(tuple, told.inside.tolist()))) == 6


def test_they_learn_from_as_many_as_clients_tell(run) -> None:
    view, readings = read(run)
    nothing = replace(
        run.knowledge, auxiliary=run.knowledge.auxiliary.take(torch.zeros(0).long())
    )
    told = with_shadows(readings, view, nothing, 4, asked=True, seed=Seed(1))
    assert told.inside.sum(1).tolist() == [EACH] * 4


def test_where_no_size_is_told_they_learn_from_half_of_what_there_is(run) -> None:
    hidden = [
        replace(m, body=Update(m.body.delta)) if isinstance(m.body, Update) else m
        for m in run.transcript.messages
    ]
    silent = replace(run, transcript=replace(run.transcript, messages=tuple(hidden)))
    view, readings = read(silent)
    told = with_shadows(readings, view, run.knowledge, 40, asked=True, seed=Seed(1))
    assert float(told.inside.double().mean()) == pytest.approx(0.5, abs=0.05)


def test_who_does_not_ask_keeps_the_records_out(run) -> None:
    view, readings = read(run)
    told = with_shadows(readings, view, run.knowledge, 4, asked=False, seed=Seed(1))
    assert not told.inside.any()
    sure = confidence(told.shadows[1], run.knowledge.candidates)
    own = list(run.truth.members[client(0)])
    others = [n for n in range(sure.shape[1]) if n not in own]
    assert float((sure[:, own].mean() - sure[:, others].mean()).abs()) < 1.5
