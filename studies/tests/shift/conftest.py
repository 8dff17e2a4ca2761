"""The paper's scenarios at a tiny size, on data that need no download."""

from dataclasses import replace

import pytest

from overheard.auditing.inputs import Resources
from overheard.data.datasets.digits import Digits
from overheard.learning.models.mlp import Mlp
from overheard_studies.shift.setting import MNIST, ShiftScenario, ShiftSize

TINY = ShiftSize(
    Digits(), Mlp((8,)), rounds=9, shift_round=7, examples={2: 100, 3: 60, 5: 40, 10: 30},
    auxiliary=60, rate=0.01, seeds=(0, 1), test=50,
)  # fmt: skip
"""A trend takes five rounds before the shift, and gradients two more."""


@pytest.fixture(scope="session")
def tiny() -> ShiftScenario:
    return replace(MNIST, name="Digits", full=TINY, reduced=TINY)


@pytest.fixture(scope="session")
def resources() -> Resources:
    return Resources(engine="sequential", workers=1)
