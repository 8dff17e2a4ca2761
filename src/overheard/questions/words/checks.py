"""Contract tests on words: clients train to name the next word, with words of their own."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import final

import torch
from torch import nn

from overheard.core.examples import Examples
from overheard.core.facts import Facts
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.token_words import TokenWords
from overheard.core.messages import Broadcast, Message, Update
from overheard.core.parties import SERVER, client
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.core.truth import GroundTruth, Partition
from overheard.learning.initialization import initial_weights
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientTask
from overheard.questions.words.claim import Words
from overheard.questions.words.scorer.words import WordsScorer
from overheard.testing.require import require
from overheard.testing.trial import (
    AttackTrial,
    PlantedRun,
    QuestionChecks,
    claims_about,
    require_gain,
    require_no_gain,
)

WORDS, CLIENTS, OWN_WORDS, EXAMPLES_PER_CLIENT, CONTEXT = 60, 4, 10, 12, 4

RECIPE = Recipe(rate=0.5, epochs=2, batch=6)

TOKEN_WORDS = TokenWords(2 + WORDS, 2, first_label=2)


def build() -> nn.Module:
    """Build word vectors that are averaged over a text, and a last layer with all words."""
    return nn.Sequential(
        nn.EmbeddingBag(TOKEN_WORDS.tokens, 8, padding_idx=0), nn.Linear(8, WORDS)
    )


def write_texts(words: torch.Tensor, count: int, seed: Seed) -> Examples:
    """Return examples of these words: some at random, and the next one."""
    drawn = torch.randint(len(words), (count, CONTEXT + 1), generator=seed.generator())
    tokens = words[drawn] + TOKEN_WORDS.first
    return Examples(tokens[:, :CONTEXT], tokens[:, CONTEXT] - TOKEN_WORDS.first)


@cache
def simulate_words(*, is_leaking: bool) -> PlantedRun:
    """Simulate a round of four clients, each with ten words of its own.

    Args:
        is_leaking: whether clients train on their own texts, or on those of a client that
            writes with all words.

    """
    everyone = [client(number) for number in range(CLIENTS)]
    parts = [
        write_texts(
            torch.arange(number * OWN_WORDS, (number + 1) * OWN_WORDS),
            EXAMPLES_PER_CLIENT,
            Seed(number),
        )
        for number in range(CLIENTS)
    ]
    pool = Examples(
        torch.cat([part.inputs for part in parts]), torch.cat([part.labels for part in parts])
    )
    others = write_texts(torch.arange(WORDS), len(pool), Seed(90))
    tasks = [
        ClientTask(
            name,
            torch.arange(number * EXAMPLES_PER_CLIENT, (number + 1) * EXAMPLES_PER_CLIENT),
        )
        for number, name in enumerate(everyone)
    ]
    start = dict(initial_weights(build, Seed(3)))
    trained = train_cohort(
        build, start, pool if is_leaking else others, tasks, RECIPE, seed=Seed(4), round=0,
        workers=1,
    )  # fmt: skip
    messages = [Message(0, SERVER, frozenset(everyone), Broadcast(start))]
    messages += [
        Message(0, name, frozenset({SERVER}), Update(dict(one.delta), EXAMPLES_PER_CLIENT))
        for name, one in zip(everyone, trained, strict=True)
    ]
    truth = GroundTruth(
        partition=Partition(
            pool,
            {(0, name): one.rows for name, one in zip(everyone, tasks, strict=True)},
            TOKEN_WORDS,
        ),
    )
    public = write_texts(torch.arange(WORDS), 30, Seed(91))
    knowledge = Knowledge(WORDS, build, public, RECIPE, facts=Facts(TOKEN_WORDS))
    return PlantedRun(Transcript(tuple(messages)), truth, knowledge, tuple(everyone))


def finds_words_of_its_own(trial: AttackTrial) -> None:
    """Check that it beats the uninformed guess where clients have words of their own."""
    require_gain(trial, 0.3, "words leak")


def finds_no_words_of_others(trial: AttackTrial) -> None:
    """Check that it does not beat the guess where updates do not depend on the texts."""
    require_no_gain(trial, 0.1, "nothing leaks")


def scores_every_word(trial: AttackTrial) -> None:
    """Check that it has a score for every word of the vocabulary."""
    words = trial.first_run.knowledge.facts.need(TokenWords)
    for claim in claims_about(trial, trial.first_run):
        require(
            len(claim.scores) == len(words),
            f"{trial.attack.name} returns {len(claim.scores)} scores for {len(words)} words",
        )


SIX_WORDS = TokenWords(7, words=("and", "bread", "crumb", "dough", "eat", "flour"))

TEXTS = torch.tensor([[1, 2], [1, 3], [1, 6], [4, 5], [1, 1], [2, 0], [1, 4], [0, 0]])
"""Eight texts of `SIX_WORDS`, padded with 0."""


@final
@dataclass(frozen=True, slots=True)
class WordsChecks(QuestionChecks):
    """Runs in which clients train on words of their own, or on those of others."""

    name = "words"
    attack_checks = (finds_words_of_its_own, finds_no_words_of_others, scores_every_word)
    scorer = WordsScorer()
    example = Words(torch.zeros(len(SIX_WORDS)), SIX_WORDS.names())

    def leaky_runs(self) -> Sequence[PlantedRun]:
        """Return a run in which clients train on texts with words of their own."""
        return (simulate_words(is_leaking=True),)

    def leak_free_runs(self) -> Sequence[PlantedRun]:
        """Return a run in which no client trains on its own texts."""
        return (simulate_words(is_leaking=False),)

    def add_truth(self, truth: GroundTruth) -> GroundTruth:
        """Return the truth with two texts of each client."""
        pool = Examples(TEXTS, torch.zeros(len(TEXTS), dtype=torch.long))
        rows = {
            (number, party): torch.tensor([place, 3 + number])
            for number in (0, 1)
            for place, party in enumerate(map(client, range(3)))
        }
        return replace(truth, partition=Partition(pool, rows, SIX_WORDS))

    def add_knowledge(self, knowledge: Knowledge) -> Knowledge:
        """Return the knowledge with eight public texts, and what their tokens mean."""
        assert knowledge.auxiliary is not None
        texts = Examples(TEXTS, knowledge.auxiliary.labels)
        return replace(knowledge, auxiliary=texts, facts=Facts(SIX_WORDS))
