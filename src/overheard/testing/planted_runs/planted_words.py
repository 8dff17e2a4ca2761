"""Runs whose clients write with words of their own, and train to name the next word."""

from dataclasses import dataclass

import torch
from torch import nn

from overheard.core.examples import Examples
from overheard.core.facts import Facts
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.token_words import TokenWords
from overheard.core.messages import Broadcast, Message, Update
from overheard.core.parties import SERVER, Party, client
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.core.truth import GroundTruth, Partition
from overheard.learning.initialization import initial_weights
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientTask

WORDS, CLIENTS, OWN_WORDS, EXAMPLES_PER_CLIENT, CONTEXT = 60, 4, 10, 12, 4

RECIPE = Recipe(rate=0.5, epochs=2, batch=6)

TOKEN_WORDS = TokenWords(2 + WORDS, 2, first_label=2)


def build() -> nn.Module:
    """Build word vectors that are averaged over a text, and a last layer with all words."""
    return nn.Sequential(
        nn.EmbeddingBag(TOKEN_WORDS.tokens, 8, padding_idx=0), nn.Linear(8, WORDS)
    )


@dataclass(frozen=True, eq=False)
class WordsRun:
    """A run, with its ground truth and the attacker's knowledge."""

    transcript: Transcript
    truth: GroundTruth
    knowledge: Knowledge

    @property
    def targets(self) -> tuple[Party, ...]:
        """Every client."""
        return tuple(client(number) for number in range(CLIENTS))


def write_texts(words: torch.Tensor, count: int, seed: Seed) -> Examples:
    """Return examples of these words: some at random, and the next one."""
    drawn = torch.randint(len(words), (count, CONTEXT + 1), generator=seed.generator())
    tokens = words[drawn] + TOKEN_WORDS.first
    return Examples(tokens[:, :CONTEXT], tokens[:, CONTEXT] - TOKEN_WORDS.first)


def simulate_words(*, is_leaking: bool) -> WordsRun:
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
        {
            (0, name): part.label_counts(WORDS)
            for name, part in zip(everyone, parts, strict=True)
        },
        {},
        partition=Partition(
            pool,
            {(0, name): one.rows for name, one in zip(everyone, tasks, strict=True)},
            TOKEN_WORDS,
        ),
    )
    public = write_texts(torch.arange(WORDS), 30, Seed(91))
    knowledge = Knowledge(WORDS, build, public, RECIPE, facts=Facts((TOKEN_WORDS,)))
    return WordsRun(Transcript(tuple(messages)), truth, knowledge)
