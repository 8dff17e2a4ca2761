"""The study of adapters by rank and layer: its networks, its plans and its table."""

from pathlib import Path

import pytest
import torch

from overheard.core.task import Task
from overheard.learning.models.transformer import Transformer
from overheard_studies.adapter_tables import TABLES
from overheard_studies.measurements.adapter_leaks import (
    LAYERS,
    SEEDS,
    TRAINED,
    WORLDS,
    adapter_leaks,
    with_frozen_head,
)
from overheard_studies.membership_tables import with_tables
from overheard_studies.values import make_value

ROOT = Path(__file__).resolve().parents[3]

NEWS = Task((6,), ("World", "Sports"), 12)


def test_with_a_frozen_head_adapters_alone_are_trained_and_the_head_is_the_same() -> None:
    first, second = (with_frozen_head(NEWS, 2, "attention", "") for _ in range(2))
    trained = [name for name, one in first.named_parameters() if one.requires_grad]
    assert len(trained) == 2 * len(LAYERS["attention"])
    assert all(name.endswith(("reduce", "expand")) for name in trained)
    heads = [one.get_parameter("last.weight") for one in (first, second)]
    assert torch.equal(*heads)


@pytest.mark.parametrize("world", WORLDS)
def test_rows_differ_in_what_is_trained_alone(world: str) -> None:
    plans = [WORLDS[world].plan(row, Path("base"), SEEDS) for row in TRAINED]
    assert len({plan.data for plan in plans}) == 1
    assert len({repr(plan.training.model) for plan in plans}) == len(TRAINED)
    assert isinstance(plans[0].training.model, Transformer)
    assert plans[0].training.model.rank == 0


def test_each_row_is_measured_in_each_world_and_alone() -> None:
    keys = [one.key for one in adapter_leaks().measurements]
    assert len(set(keys)) == len(keys) == len(TRAINED) * len(WORLDS)
    assert {f"records_{row}" for row in TRAINED} <= {*keys}


def test_the_table_has_guess_and_control_and_says_what_was_refused() -> None:
    start = "users_rank_4_reidentify_wccn_top1"
    values = [
        *(make_value(f"{start}{end}", "", one) for end, one in (("", 0.5), ("_guess", 0.05))),
        make_value(f"{start}_control", "", 0.04),
        make_value("users_rank_4_combined_rows_refused", "no head", None),
    ]
    rows = [*TABLES["leaks"][1]({one.name: one for one in values})]
    assert rows[2:] == [
        "| rank 4 | refused | not measured | not measured | not measured "
        "| .50 [–, –] (.05; .04) |"
    ]


def test_the_page_has_the_table_of_the_stored_values() -> None:
    page = (ROOT / "docs" / "adapters.md").read_text("utf-8")
    assert with_tables(page, ROOT / "studies" / "reproduced", TABLES) == page
