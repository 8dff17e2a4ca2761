from dataclasses import replace

import pytest
import torch

from overheard.core.compute_settings import ComputeSettings
from overheard.core.facts import Facts
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.candidate_records import CandidateRecords, candidate_records
from overheard.core.parties import SERVER, client
from overheard.core.seeds import Seed
from overheard.core.true_facts.record_owners import RecordOwners
from overheard.defenses.local_dp import LocalDp
from overheard.questions.membership.checks import EXAMPLES_PER_CLIENT, simulate_membership
from overheard.questions.membership.estimators import shadow_logits as module
from overheard.questions.membership.estimators.record_logits import record_confidence
from overheard.questions.membership.estimators.shadow_logits import (
    ShadowLogits,
    compute_shadow_logits,
)
from overheard.testing.trial import PlantedRun
from tests.runs.changed_updates import change_updates
from tests.simulation.small_run import CountingCache


@pytest.fixture(scope="module")
def run() -> PlantedRun:
    return simulate_membership(memorised=True)


@pytest.fixture(autouse=True)
def _small_jobs(monkeypatch) -> None:
    """Train four models per job: six models take two jobs per round."""
    monkeypatch.setattr(module, "CHUNK", 4)


def logits_of(
    run: PlantedRun,
    count: int = 6,
    rounds: tuple[int, ...] = (0, 1),
    *,
    shelf: CountingCache | None = None,
    online: bool = True,
    knowledge: Knowledge | None = None,
) -> ShadowLogits:
    known = knowledge or run.knowledge
    known = replace(known, compute=replace(known.compute, cache=shelf or CountingCache()))
    view = run.transcript.seen_by(SERVER).during(rounds)
    return compute_shadow_logits(view, known, rounds, count, include_candidates=online)


def test_models_train_on_as_many_examples_as_clients_report(run) -> None:
    nothing = replace(
        run.knowledge, auxiliary=run.knowledge.auxiliary.take(torch.zeros(0).long())
    )
    assert (
        logits_of(run, 4, knowledge=nothing).is_member.sum(1).tolist()
        == [EXAMPLES_PER_CLIENT] * 4
    )


@pytest.mark.slow
def test_models_train_on_half_of_the_examples_without_reported_sizes(run) -> None:
    hidden = change_updates(run.transcript.messages, lambda update: {"examples": None})
    silent = replace(run, transcript=replace(run.transcript, messages=hidden))
    # 180 records in 8 models: a standard error of 0.013.
    assert float(logits_of(silent, 8).is_member.double().mean()) == pytest.approx(0.5, abs=0.05)


def test_models_do_not_train_on_excluded_candidates(run) -> None:
    shadows = logits_of(run, 4, online=False)
    assert not shadows.is_member.any()
    log_odds = record_confidence(
        shadows.rounds[1], candidate_records(run.knowledge), "classification"
    )
    members = list(run.truth.facts.need(RecordOwners).members_of(client(0)))
    others = [n for n in range(log_odds.shape[1]) if n not in members]
    assert float((log_odds[:, members].mean() - log_odds[:, others].mean()).abs()) < 1.5


def test_reuses_models_for_fewer_rounds_or_more_models(run) -> None:
    shelf = CountingCache()
    both = logits_of(run, 8, shelf=shelf)
    assert len(shelf.saved) == 2 * 2
    alone = logits_of(run, 8, (1,), shelf=shelf)
    assert len(shelf.saved) == 4
    assert alone.rounds[1].equal(both.rounds[1])
    assert alone.is_member.equal(both.is_member)
    more = logits_of(run, 12, shelf=shelf)
    assert len(shelf.saved) == 4 + 2
    assert more.rounds[0][:8].equal(both.rounds[0])


def test_excluding_candidates_trains_separate_models(run) -> None:
    shelf = CountingCache()
    logits_of(run, shelf=shelf)
    logits_of(run, shelf=shelf, online=False)
    assert len(shelf.saved) == 2 * 4


def changes(known: Knowledge) -> tuple[Knowledge, ...]:
    fewer = torch.arange(50)
    return (
        replace(known, recipe=replace(known.recipe, rate=0.3)),
        replace(known, compute=replace(known.compute, seed=Seed(9))),
        replace(known, auxiliary=known.auxiliary.take(fewer)),
        replace(known, facts=Facts(CandidateRecords(candidate_records(known).take(fewer)))),
        replace(known, defenses=(LocalDp(clip=1.0, noise_multiplier=0.1),)),
    )


def test_a_change_of_any_input_trains_new_models(run) -> None:
    shelf = CountingCache()
    for number, known in enumerate((run.knowledge, *changes(run.knowledge)), start=1):
        logits_of(run, shelf=shelf, knowledge=known)
        assert len(shelf.saved) == 4 * number


def test_other_broadcasts_train_new_models(run) -> None:
    shelf = CountingCache()
    logits_of(run, shelf=shelf)
    logits_of(simulate_membership(memorised=False), shelf=shelf)
    # Both runs start from equal weights and continue from different updates.
    assert len(shelf.saved) == 4 + 2


def test_an_interrupted_training_continues_from_the_cache(run) -> None:
    shelf, progress = CountingCache(), list[tuple[str, int, int]]()

    def interrupt(what: str, done: int, total: int) -> None:
        progress.append((what, done, total))
        if done == 3:
            raise KeyboardInterrupt

    hasty = replace(run.knowledge, compute=ComputeSettings(workers=1, on_progress=interrupt))
    with pytest.raises(KeyboardInterrupt):
        logits_of(run, shelf=shelf, knowledge=hasty)
    assert progress == [("shadow models", done, 4) for done in (1, 2, 3)]
    assert len(shelf.saved) == 3
    whole = logits_of(run, shelf=shelf)
    assert len(shelf.saved) == 4
    assert all(whole.rounds[n].equal(logits_of(run).rounds[n]) for n in (0, 1))
