"""The model's tensors are found among all that a recording has."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from overheard.auditing.recorded_tensors.model_tensors import (
    match_model_tensors,
    select_matched_tensors,
)
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
    whole = transcript(weights)
    match = match_model_tensors(RECORDING, whole, network(), "", record)
    update = select_matched_tensors(whole, match).seen_by(SERVER).updates(client(0))[0]
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
    with pytest.raises(PlanError, match=r"weight is 2x4 .* reads 4 inputs and the plan's 3"):
        selected({"weight": torch.ones(2, 4), "bias": torch.ones(2)})


def test_two_recorded_tensors_that_the_network_shares_must_be_equal() -> None:
    tied = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    tied[1].weight = tied[0].weight
    sent = {name: tensor.detach().clone() for name, tensor in tied.state_dict().items()}
    match_model_tensors(RECORDING, transcript(sent), tied, "", None)
    sent["1.weight"][0, 0] += 1
    with pytest.raises(PlanError, match=r"1\.weight and 0\.weight differ, and are one tensor"):
        match_model_tensors(RECORDING, transcript(sent), tied, "", None)
