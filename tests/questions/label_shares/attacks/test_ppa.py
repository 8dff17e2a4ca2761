"""Both forms of PPA."""

from dataclasses import replace

import pytest
import torch

from overheard.core.knowledge import Knowledge
from overheard.core.parties import SERVER, client
from overheard.core.seeds import Seed
from overheard.questions.label_shares.attacks.ppa import Ppa, preference_targets
from overheard.testing.planted_labels import SKEWED
from overheard.testing.trial import PlantedRun
from tests.questions.label_shares.simulated_view import simulate_view

TARGETS = tuple(client(number) for number in range(4))


def with_few(run: PlantedRun) -> Knowledge:
    """Return the same knowledge with fewer virtual clients."""
    return replace(run.knowledge, compute=replace(run.knowledge.compute, virtual_clients=64))


def test_a_preference_is_the_most_frequent_class():
    shares = torch.tensor([[0.2, 0.5, 0.3], [0.4, 0.2, 0.4]])
    assert preference_targets(shares).tolist() == [[0, 1, 0], [1, 0, 0]]


class TestOnALeak:
    def claims(self, leaky, **settings):
        attack = Ppa(**settings)
        view = leaky.transcript.seen_by(SERVER)
        claims = attack.infer(view, TARGETS, with_few(leaky), Seed(0))
        return torch.stack([claims[who].shares for who in TARGETS])

    @pytest.mark.slow
    def test_the_published_form_finds_the_most_frequent_class(self, leaky):
        most = self.claims(leaky, form="preference").argmax(1)
        held = torch.tensor(SKEWED).argmax(1)
        assert int((most == held).sum()) >= 3

    @pytest.mark.slow
    def test_the_published_form_is_overconfident_for_balanced_clients(self, tight, leaky):
        # It expresses certainty and not shares.
        sure, fair = (
            self.claims(tight, form=form).amax(1).mean() for form in ("preference", "shares")
        )
        assert float(sure) > float(fair)

    def test_other_retraining_gives_other_claims(self, leaky):
        once, twice = (
            self.claims(leaky, epochs=5, samples=16, retraining=number) for number in (1, 2)
        )
        assert not torch.equal(once, twice)

    @pytest.mark.slow
    def test_can_read_two_rounds(self, leaky):
        view = simulate_view([(0, 1), (0, 1)])
        attack = Ppa(most_rounds=2)
        claims = attack.infer(view, TARGETS[:2], with_few(leaky), Seed(0))
        for place in range(2):
            assert int(claims[TARGETS[place]].shares.argmax()) == place
