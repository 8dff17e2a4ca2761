"""A federation and virtual clients at a tiny size, on data that need no download."""

from dataclasses import replace

import pytest

from overheard.data.datasets.digits import Digits
from overheard.learning.models.mlp import Mlp
from overheard.questions.label_shares.attacks.amortised import Amortised
from overheard.questions.label_shares.attacks.whispers import Whispers
from overheard_studies.whispers.setting import (
    DECAF,
    MNIST,
    Method,
    WhispersBenchmark,
    WhispersSize,
)

TINY = WhispersSize(
    Digits(),
    Mlp((16,)),
    rate=0.01,
    batch=16,
    examples=(60, 100),
    clients=4,
    auxiliary=15,
    rounds=2,
    virtual=32,
    seeds=(0,),
    test=50,
)


@pytest.fixture(scope="session")
def tiny() -> WhispersBenchmark:
    return replace(MNIST, name="Digits", full=replace(TINY, seeds=(0, 1)), reduced=TINY)


@pytest.fixture(scope="session")
def few_methods() -> tuple[Method, ...]:
    return (
        DECAF,
        Method("the paper's own", Whispers(size="doubling", epochs=3)),
        Method("Overheard's", Amortised(most_rounds=1, steps=50)),
    )
