"""A dozen distinct users, in a table that needs no download."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from overheard.auditing.inputs import Resources
from overheard.data.datasets.custom import Own
from overheard.learning.models.mlp import Mlp
from overheard_studies.deanonymization.setting import WISDM, IdentityScenario

USERS, EACH, LABELS = 12, 24, 3


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write users with typical values in four columns and a preferred label in half of them."""
    draws = np.random.default_rng(0)
    rows = []
    for user in range(USERS):
        style = draws.normal(0, 3, 4)
        for _ in range(EACH):
            label = (user if draws.random() < 0.5 else int(draws.integers(LABELS))) % LABELS
            held = style + draws.normal(0, 0.5, 4)
            marks = np.eye(LABELS)[label] * 2 + draws.normal(0, 0.5, LABELS)
            rows.append([*held, *marks, f"label {label}", f"u{user:02}", "ab"[user % 2]])
    names = [f"style{n}" for n in range(4)] + [f"mark{n}" for n in range(LABELS)]
    path = tmp_path_factory.mktemp("users") / "users.csv"
    pd.DataFrame(rows, columns=[*names, "label", "user", "kind"]).to_csv(path, index=False)
    return path


@pytest.fixture(scope="session")
def tiny(table: Path) -> IdentityScenario:
    return replace(
        WISDM,
        key="tiny",
        name="Tiny",
        source=Own(str(table), user="user", attributes=("kind",)),
        model=Mlp((16,)),
        layer=0,
        clients=USERS,
        examples=EACH,
        rate=0.3,
        batch=8,
        rounds=2,
        most_rounds=2,
        participation=1.0,
        seeds=(0,),
        test=50,
        utility="accuracy",
        background=20,
        modes=3,
        chronological_prior="random",
        steps=300,
    )


@pytest.fixture(scope="session")
def resources() -> Resources:
    return Resources(engine="sequential", workers=1)
