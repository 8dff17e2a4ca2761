"""The model's tensors are found among all that a recording has."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from overheard.auditing.recorded_tensors.model_tensors import select_model_tensors
from overheard.core.errors import PlanError
from overheard.core.messages import Broadcast, Message, Update
from overheard.core.parties import SERVER, client
from overheard.core.transcript import Transcript

RECORDING = Path("recording")
MODEL = {"weight": torch.ones(2, 3), "bias": torch.ones(2)}


def network() -> nn.Module:
    return nn.Linear(3, 2)


def transcript(weights: dict[str, Tensor]) -> Transcript:
    """A broadcast, and an update twice as large."""
    update = Update({name: 2 * one for name, one in weights.items()}, examples=5)
    return Transcript(
        (
            Message(0, SERVER, frozenset({client(0)}), Broadcast(weights)),
            Message(0, client(0), frozenset({SERVER}), update),
        )
    )


def records(*names: str) -> dict[str, Tensor]:
    """The model's tensors in several records, with another number in each."""
    return {
        f"{record}/{name}": one * number
        for number, record in enumerate(names, 1)
        for name, one in MODEL.items()
    }


def selected(weights: dict[str, Tensor], record: str | None = None) -> dict[str, list[object]]:
    """The numbers that an attack gets of the update."""
    found = select_model_tensors(RECORDING, transcript(weights), network(), "", record)
    update = found.seen_by(SERVER).updates(client(0))[0]
    assert update.examples == 5
    return {name: one.flatten().tolist() for name, one in update.delta.items()}


def test_tensors_of_no_layer_count_as_traffic_only() -> None:
    found = selected({"counts": torch.ones(4), **MODEL})
    assert found == {"weight": [2.0] * 6, "bias": [2.0] * 2}


def test_the_model_is_the_record_with_its_names_and_shapes() -> None:
    others = {"extra/weight": torch.ones(7), "extra/bias": torch.ones(1)}
    assert selected(others | records("model")) == {"weight": [2.0] * 6, "bias": [2.0] * 2}


def test_of_two_records_the_model_is_flowers_own_or_the_one_that_the_plan_names() -> None:
    # c has the numbers 1, arrays the numbers 2, and updates are twice as large.
    assert selected(records("c", "arrays"))["bias"] == [4.0, 4.0]
    assert selected(records("c", "arrays"), record="c")["bias"] == [2.0, 2.0]
    with pytest.raises(PlanError, match=r"control, model\. Set training\.record"):
        selected(records("model", "control"))


def test_names_what_differs_and_what_to_do() -> None:
    with pytest.raises(
        PlanError, match="weight is missing in the recording and 2x3 in the plan"
    ):
        selected({"a": torch.ones(2)})
    with pytest.raises(PlanError, match=r"adapters, must have requires_grad = False"):
        selected({"weight": torch.ones(3, 2), "bias": torch.ones(2)})
