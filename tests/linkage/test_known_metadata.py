"""Metadata of known users' updates."""

from dataclasses import replace

import pytest
import torch

from overheard.core.defense import Defense
from overheard.core.errors import NeedsError
from overheard.core.examples import Examples
from overheard.core.facts import Facts
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.known_users import KnownUsers
from overheard.core.messages import Broadcast, Message
from overheard.core.parties import SERVER, client, shadow_device
from overheard.core.seeds import Seed
from overheard.defenses.label_smoothing import LabelSmoothing
from overheard.learning.initialization import initial_weights
from overheard.linkage.known_metadata import LOSS, read_shadow_metadata, simulate_metadata
from overheard.testing.planted_labels import CLASSES, COMPUTE, RECIPE, blobs, build
from tests.runs.planted_users import make_message, make_prior, make_view

START = dict(initial_weights(build, Seed(3)))


def wrong(examples: Examples) -> Examples:
    """Replace the labels by random ones, so that they are hard to learn."""
    draws = torch.randint(CLASSES, (len(examples),), generator=Seed(8).generator())
    return Examples(examples.inputs, draws)


PRIORS = {
    "easy": blobs((20,) * CLASSES, Seed(1)),
    "hard": wrong(blobs((20,) * CLASSES, Seed(2))),
    "small": blobs((1, 0, 0, 0), Seed(3)),
}
KNOWLEDGE = Knowledge(
    CLASSES, build, None, RECIPE, compute=COMPUTE, facts=Facts(KnownUsers(PRIORS))
)


def broadcasts(*rounds: int):
    return make_view(
        *(Message(n, SERVER, frozenset({client(0)}), Broadcast(START)) for n in rounds)
    )


class Emptying(Defense):
    """Removes all examples of user "easy", and half of those of others."""

    name = "emptying"

    def on_data(self, data, context):
        return data.take(torch.arange(0 if "easy" in context.party else len(data) // 2))


class TestSimulateMetadata:
    def test_random_labels_give_a_larger_loss(self):
        known = simulate_metadata(broadcasts(0, 1), KNOWLEDGE, chunks=2, max_rounds=8)
        assert known.names == (LOSS,)
        losses = [known.values[known.users == user].mean() for user in range(2)]
        assert losses[0] < losses[1]

    def test_each_chunk_of_a_user_is_a_client(self):
        # "small" has one example, hence one chunk.
        known = simulate_metadata(broadcasts(0, 1), KNOWLEDGE, chunks=2, max_rounds=8)
        assert known.users.tolist() == [0, 0, 1, 1, 2] * 2
        assert known.clients.tolist() == [0, 1, 2, 3, 4] * 2

    def test_trains_on_the_examples_that_defenses_leave(self):
        defended = replace(KNOWLEDGE, defenses=(Emptying(),))
        known = simulate_metadata(broadcasts(0), defended, chunks=1, max_rounds=1)
        # Nothing is left of "easy", nor of half an example of "small".
        assert known.values[:, 0].isfinite().tolist() == [False, False, False]
        two = replace(
            KnownUsers.of(KNOWLEDGE), prior_examples={**PRIORS, "other": PRIORS["easy"]}
        )
        defended = replace(defended, facts=Facts(two))
        known = simulate_metadata(broadcasts(0), defended, chunks=1, max_rounds=1)
        assert known.values[:, 0].isfinite().tolist() == [False, True, False, True]

    def test_changes_of_training_are_applied_once(self):
        # The known recipe smooths labels already, because the attacker knows the defense.
        known = replace(KNOWLEDGE, recipe=replace(RECIPE, label_smoothing=0.5))
        defended = replace(known, defenses=(LabelSmoothing(0.5),))
        once, again = (
            simulate_metadata(broadcasts(0), one, chunks=2, max_rounds=1).values
            for one in (known, defended)
        )
        assert torch.equal(once, again)

    @pytest.mark.parametrize("missing", ["build_model", "recipe"])
    def test_names_what_it_needs(self, missing):
        with pytest.raises(NeedsError, match="recipe"):
            simulate_metadata(
                broadcasts(0), replace(KNOWLEDGE, **{missing: None}), chunks=1, max_rounds=1
            )

    def test_needs_a_broadcast(self):
        with pytest.raises(NeedsError, match="broadcasts"):
            simulate_metadata(
                make_view(make_message(0, client(0))), KNOWLEDGE, chunks=1, max_rounds=1
            )


class TestReadShadowMetadata:
    def test_reads_the_shadow_devices_of_candidate_users(self):
        known_users = KnownUsers(
            {"ann": make_prior(1), "bob": make_prior(1)},
            {"eve": make_prior(1)},
            {shadow_device(0): "bob", shadow_device(1): "eve", shadow_device(2): "ann"},
        )
        view = make_view(
            make_message(0, shadow_device(0), metrics={"loss": 1.0}),
            make_message(0, shadow_device(1), metrics={"loss": 9.0}),
            make_message(0, shadow_device(2), metrics={"loss": 3.0}),
            make_message(0, client(0), metrics={"loss": 9.0}),
        )
        known = read_shadow_metadata(
            view, Knowledge(2, facts=Facts(known_users)), with_order=False
        )
        assert known.values[:, 0].tolist() == [-1, 1]
        assert known.users.tolist() == [1, 0]

    def test_needs_shadow_devices_that_took_part(self):
        known_users = KnownUsers({"ann": make_prior(1), "bob": make_prior(1)})
        with pytest.raises(NeedsError, match=r"data\.people\.shadow_devices"):
            read_shadow_metadata(
                make_view(make_message(0, client(0))),
                Knowledge(2, facts=Facts(known_users)),
                with_order=False,
            )
