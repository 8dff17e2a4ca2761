"""Corrected updates are compared with those of known users in the same round."""

import pytest
import torch

from overheard.core.errors import NeedsError
from overheard.core.parties import SERVER, Party
from overheard.linkage.known_updates import load_known_updates
from overheard.linkage.round_evidence import RoundEvidence, fit_round_evidence
from overheard.testing.planted_users import users_of
from overheard.testing.trial import PlantedRun
from tests.runs.scaffold_users import simulate_scaffold


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> PlantedRun:
    """A run of all users in all rounds."""
    return simulate_scaffold(tmp_path_factory.mktemp("scaffold"))


@pytest.fixture(scope="module")
def evidence(run: PlantedRun) -> RoundEvidence:
    """The evidence of all updates."""
    view = run.transcript.seen_by(SERVER)
    known = {-1: load_known_updates(view, run.knowledge, "simulated", -1, 8)}
    return fit_round_evidence(view, known, ())


def test_most_updates_of_later_rounds_have_the_most_evidence_for_their_user(
    run: PlantedRun, evidence: RoundEvidence
) -> None:
    names = {index: sender for sender, index in evidence.sender_indices.items()}
    users = [users_of(run)[names[sender]] for sender in evidence.senders.tolist()]
    found = [f"user {index}" for index in evidence.scores.argmax(1).tolist()]
    later = [a == b for a, b, n in zip(users, found, evidence.rounds, strict=True) if n]
    # Guessing is right for 1 of 8 users.
    assert sum(later) / len(later) > 0.5


def test_two_updates_are_of_one_user_as_often_as_their_evidence_says() -> None:
    """With chances 3/4 and 1/4, both are of one user with 9/16 + 1/16, or 2 * 3/16."""
    sure = torch.tensor([0.75, 0.25], dtype=torch.float64).log()
    scores = torch.stack((sure, sure, sure.flip(0)))
    parties = {Party(f"anon/{n}-0"): n for n in range(3)}
    three = torch.arange(3)
    read = RoundEvidence(parties, three, three, scores, torch.zeros(3))
    same = read.same_user().exp()
    assert torch.allclose(same[0, 1], torch.tensor(10 / 16, dtype=torch.float64))
    assert torch.allclose(same[0, 2], torch.tensor(6 / 16, dtype=torch.float64))


def test_refuses_unknown_senders_and_views_without_updates(
    run: PlantedRun, evidence: RoundEvidence
) -> None:
    with pytest.raises(NeedsError, match="anon/9-9"):
        evidence.index_of(Party("anon/9-9"))
    with pytest.raises(NeedsError, match="comparing senders"):
        fit_round_evidence(run.transcript.seen_by(SERVER), {}, run.targets)
