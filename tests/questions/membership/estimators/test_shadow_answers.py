from dataclasses import replace

import pytest
import torch

from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.means import Means
from overheard.core.messages import Update
from overheard.core.parties import SERVER, client
from overheard.core.seeds import Seed
from overheard.questions.membership.estimators import shadow_answers as module
from overheard.questions.membership.estimators.record_readings import confidence
from overheard.questions.membership.estimators.shadow_answers import (
    ShadowAnswers,
    shadow_answers,
)
from overheard.testing.worlds.planted_membership import EACH, Remembered, federate_records
from tests.simulation.world import Spy


@pytest.fixture(scope="module")
def run() -> Remembered:
    return federate_records(by_heart=True)


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch) -> None:
    """Four models a piece: of six, two pieces a round."""
    monkeypatch.setattr(module, "CHUNK", 4)


def asked(
    run: Remembered,
    count: int = 6,
    rounds: tuple[int, ...] = (0, 1),
    *,
    shelf: Spy | None = None,
    online: bool = True,
    knowledge: Knowledge | None = None,
) -> ShadowAnswers:
    known = knowledge or run.knowledge
    known = replace(known, means=replace(known.means, shelf=shelf or Spy()))
    view = run.transcript.seen_by(SERVER).during(rounds)
    return shadow_answers(view, known, rounds, count, asked=online)


def test_they_have_the_records_that_they_learned_from_by_heart(run) -> None:
    told = asked(run)
    assert told.inside.shape == (6, len(run.knowledge.candidates))
    assert told.rounds.keys() == {0, 1}
    sure = confidence(told.rounds[1], run.knowledge.candidates)
    assert float(sure[told.inside].mean()) > float(sure[~told.inside].mean()) + 2
    assert len(set(map(tuple, told.inside.tolist()))) == 6


def test_they_learn_from_as_many_as_clients_tell(run) -> None:
    nothing = replace(
        run.knowledge, auxiliary=run.knowledge.auxiliary.take(torch.zeros(0).long())
    )
    assert asked(run, 4, knowledge=nothing).inside.sum(1).tolist() == [EACH] * 4


@pytest.mark.slow
def test_where_no_size_is_told_they_learn_from_half_of_what_there_is(run) -> None:
    hidden = [
        replace(m, body=Update(m.body.delta)) if isinstance(m.body, Update) else m
        for m in run.transcript.messages
    ]
    silent = replace(run, transcript=replace(run.transcript, messages=tuple(hidden)))
    assert float(asked(silent, 40).inside.double().mean()) == pytest.approx(0.5, abs=0.05)


def test_who_does_not_ask_keeps_the_records_out(run) -> None:
    told = asked(run, 4, online=False)
    assert not told.inside.any()
    sure = confidence(told.rounds[1], run.knowledge.candidates)
    own = list(run.truth.members[client(0)])
    others = [n for n in range(sure.shape[1]) if n not in own]
    assert float((sure[:, own].mean() - sure[:, others].mean()).abs()) < 1.5


def test_one_example_is_too_few(run) -> None:
    one = run.knowledge.auxiliary.take(torch.zeros(1).long())
    with pytest.raises(NeedsError, match="two examples or more"):
        asked(run, knowledge=replace(run.knowledge, auxiliary=one), online=False)


def test_nothing_is_trained_twice_for_one_round_alone_or_for_more_models(run) -> None:
    shelf = Spy()
    both = asked(run, 8, shelf=shelf)
    assert len(shelf.saved) == 2 * 2
    alone = asked(run, 8, (1,), shelf=shelf)
    assert len(shelf.saved) == 4
    assert alone.rounds[1].equal(both.rounds[1])
    assert alone.inside.equal(both.inside)
    more = asked(run, 12, shelf=shelf)
    assert len(shelf.saved) == 4 + 2
    assert more.rounds[0][:8].equal(both.rounds[0])


def test_who_keeps_the_records_out_trains_its_own(run) -> None:
    shelf = Spy()
    asked(run, shelf=shelf)
    asked(run, shelf=shelf, online=False)
    assert len(shelf.saved) == 2 * 4


def changes(known: Knowledge) -> tuple[Knowledge, ...]:
    fewer = torch.arange(50)
    return (
        replace(known, recipe=replace(known.recipe, rate=0.3)),
        replace(known, means=replace(known.means, seed=Seed(9))),
        replace(known, auxiliary=known.auxiliary.take(fewer)),
        replace(known, candidates=known.candidates.take(fewer)),
    )


def test_whatever_moves_an_answer_has_them_trained_anew(run) -> None:
    shelf = Spy()
    for number, known in enumerate((run.knowledge, *changes(run.knowledge)), start=1):
        asked(run, shelf=shelf, knowledge=known)
        assert len(shelf.saved) == 4 * number


def test_other_broadcasts_have_them_trained_anew(run) -> None:
    shelf = Spy()
    asked(run, shelf=shelf)
    asked(federate_records(by_heart=False), shelf=shelf)
    # Both runs begin alike, and go on from updates that differ.
    assert len(shelf.saved) == 4 + 2


def test_what_was_trained_before_a_ctrl_c_is_kept_and_the_rest_trained_later(run) -> None:
    shelf, told = Spy(), list[tuple[str, int, int]]()

    def interrupt(what: str, done: int, total: int) -> None:
        told.append((what, done, total))
        if done == 3:
            raise KeyboardInterrupt

    hasty = replace(run.knowledge, means=Means(workers=1, on_progress=interrupt))
    with pytest.raises(KeyboardInterrupt):
        asked(run, shelf=shelf, knowledge=hasty)
    assert told == [("shadow models", done, 4) for done in (1, 2, 3)]
    assert len(shelf.saved) == 3
    whole = asked(run, shelf=shelf)
    assert len(shelf.saved) == 4
    assert all(whole.rounds[n].equal(asked(run).rounds[n]) for n in (0, 1))
