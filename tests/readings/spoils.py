"""Ways to read a run wrongly, and what the product makes of each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tests.readings.channels import Options, next_model
from tests.readings.federations import RATE, Reply, Round, SavedRun, Tensors

NO_OPTIONS: Options = MappingProxyType({})

Change = Callable[[SavedRun], SavedRun]

Truth = dict[str, list[dict[str, object]]]
"""The content of truth.json."""


def same_run(run: SavedRun) -> SavedRun:
    """Return the run as it is."""
    return run


def same_truth(truth: Truth) -> Truth:
    """Return the truth as it is."""
    return truth


def same_text(text: str) -> str:
    """Return the text of truth.json as it is."""
    return text


def same_examples(inputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor | np.ndarray]:
    """Return the attacker's examples as they are."""
    return inputs, labels


@dataclass(frozen=True)
class Spoil:
    """A way to read a run wrongly.

    Args:
        name: what is wrong.
        change: what is sent or saved in place of the run.
        options: what is given, wrongly, to the import or the recorder.
        truth: what is written, wrongly, as the truth.
        truth_text: what the text of truth.json becomes then.
        examples: what the attacker's examples become.
        says: a regular expression that what the product says must match; "" = any sentence.
        mend: the options that restore the claims; None = none can.
        is_harmless: whether the claims stay the same, so that nothing need be said.
        is_consistent: whether the messages fit each other, so that only an audit can notice it.
        is_unstorable: whether a recorder or an import turns it away, or leaves it out.
        is_possible: whether it can happen to a run.

    """

    name: str
    change: Change = same_run
    options: Options = field(default_factory=lambda: NO_OPTIONS)
    truth: Callable[[Truth], Truth] = same_truth
    truth_text: Callable[[str], str] = same_text
    examples: Callable[[Tensor, Tensor], tuple[Tensor, Tensor | np.ndarray]] = same_examples
    says: str = ""
    mend: Callable[[SavedRun], Options] | None = None
    is_harmless: bool = False
    is_consistent: bool = False
    is_unstorable: bool = False
    is_possible: Callable[[SavedRun], bool] = lambda run: True


def each_reply(
    run: SavedRun, change: Callable[[Tensors, Tensors, int | None], Tensors]
) -> SavedRun:
    """Return the run with other weights in each reply: of the start, the end, the examples."""
    rounds = []
    for one in run.rounds:
        replies = {
            name: None
            if reply is None
            else replace(reply, weights=change(one.start, reply.weights, reply.examples))
            for name, reply in one.replies.items()
        }
        rounds.append(Round(one.start, replies))
    return replace(run, rounds=tuple(rounds))


def each_tensor(
    change: Callable[[Tensor, Tensor], Tensor],
) -> Change:
    """Return a change of each tensor of a reply, from its start and its end."""

    def changed(start: Tensors, end: Tensors, examples: int | None) -> Tensors:
        return {name: change(start[name], tensor) for name, tensor in end.items()}

    return lambda run: each_reply(run, changed)


def codes(difference: Tensor) -> Tensor:
    """Return whole numbers of 8 bits."""
    scale = float(difference.abs().max()) / 127 or 1.0
    return (difference / scale).round()


def zeros(start: Tensors, end: Tensors, examples: int | None) -> Tensors:
    """Return a model of zeros."""
    return {name: torch.zeros_like(tensor) for name, tensor in end.items()}


def numerators(start: Tensors, end: Tensors, examples: int | None) -> Tensors:
    """Return the weights times the number of examples."""
    return {name: tensor * (examples or 1) for name, tensor in end.items()}


def all_equal(run: SavedRun) -> SavedRun:
    """Return the run where each reply is the mean of the round."""
    rounds = []
    for number, one in enumerate(run.rounds):
        mean = next_model(run, number)
        replies = {
            name: None if reply is None else replace(reply, weights=mean)
            for name, reply in one.replies.items()
        }
        rounds.append(Round(one.start, replies))
    return replace(run, rounds=tuple(rounds))


def saved_after(run: SavedRun) -> SavedRun:
    """Return the run whose models are those after the aggregation of their round."""
    rounds = [
        Round(next_model(run, number), one.replies) for number, one in enumerate(run.rounds)
    ]
    return replace(run, rounds=tuple(rounds))


def late_replies(run: SavedRun) -> SavedRun:
    """Return the run in which half of the clients begin from an earlier broadcast."""
    assert run.again is not None
    again = run.again(late=lambda number, client: client % 2 == 0)
    return replace(run, rounds=again.rounds, final=again.final)


def one_is_nan(run: SavedRun) -> SavedRun:
    """Return the run with a number that is none in the first reply."""
    first = run.rounds[0]
    name, reply = next(iter(first.replies.items()))
    tensor_name = next(iter(reply.weights))
    tensor = reply.weights[tensor_name].clone()
    tensor.view(-1)[0] = float("nan")
    broken = replace(reply, weights={**reply.weights, tensor_name: tensor})
    return replace(
        run, rounds=(Round(first.start, {**first.replies, name: broken}), *run.rounds[1:])
    )


def each_count(change: Callable[[int], int | None]) -> Change:
    """Return a change of each number of examples."""

    def changed(run: SavedRun) -> SavedRun:
        rounds = []
        for one in run.rounds:
            replies: dict[str, Reply | None] = {
                name: None
                if reply is None or reply.examples is None
                else replace(reply, examples=change(reply.examples))
                for name, reply in one.replies.items()
            }
            rounds.append(Round(one.start, replies))
        return replace(run, rounds=tuple(rounds))

    return changed


def swapped_models(run: SavedRun) -> SavedRun:
    """Return the run with the models of two rounds exchanged."""
    first, second, third, *others = run.rounds
    return replace(
        run,
        rounds=(
            first,
            Round(third.start, second.replies),
            Round(second.start, third.replies),
            *others,
        ),
    )


def halfway(run: SavedRun) -> SavedRun:
    """Return the run whose every second client saves its weights in the middle of training."""
    rounds = []
    for one in run.rounds:
        replies = dict(one.replies)
        for name, reply in list(replies.items())[::2]:
            if reply is not None:
                middle = {key: (one.start[key] + end) / 2 for key, end in reply.weights.items()}
                replies[name] = replace(reply, weights=middle)
        rounds.append(Round(one.start, replies))
    return replace(run, rounds=tuple(rounds))


def is_import(run: SavedRun) -> bool:
    """Return whether files are imported."""
    return run.channel == "import"


def takes_kind(run: SavedRun) -> bool:
    """Return whether the user says what replies hold; NVFlare's messages do."""
    return run.channel != "nvflare"


def is_weighted(run: SavedRun) -> bool:
    """Return whether the server's mean is weighted by numbers of examples."""
    return run.name != "DP"


def _gradient(start: Tensor, end: Tensor) -> Tensor:
    return (start - end) / RATE


def kind_of(kind: str, rate: float | None = None) -> Callable[[SavedRun], Options]:
    """Return the options that state what replies hold."""
    options: Mapping[str, object] = {"kind": kind}
    return lambda run: options if rate is None else {**options, "rate": rate}


def _twice(truth: Truth) -> Truth:
    first = dict(truth["counts"][0])
    first["labels"] = list(reversed(first["labels"]))  # type: ignore[call-overload]
    return {**truth, "counts": [*truth["counts"], first]}


def _of_nobody(truth: Truth) -> Truth:
    other = {**truth["counts"][0], "party": "client/nobody"}
    return {**truth, "counts": [*truth["counts"], other]}


def _of_round_99(truth: Truth) -> Truth:
    return {**truth, "counts": [*truth["counts"], {**truth["counts"][0], "round": 99}]}


def _of_four_classes(truth: Truth) -> Truth:
    counts = [{**one, "labels": [*one["labels"], 1]} for one in truth["counts"]]  # type: ignore[misc]
    return {**truth, "counts": counts}


def read_as_differences(name: str, change: Change = same_run, **more: Any) -> Spoil:
    """Return a way in which the user says, wrongly, that replies hold differences."""
    options = {"kind": "differences"}
    return Spoil(name, change, options, is_possible=takes_kind, **more)


SPOILS = (
    Spoil(
        "differences, read as weights",
        each_tensor(lambda start, end: end - start),
        says="differences",
        mend=kind_of("differences"),
    ),
    read_as_differences(
        "weights, read as differences", says="weights", mend=kind_of("weights")
    ),
    Spoil(
        "gradients, read as weights",
        each_tensor(_gradient),
        says="gradients",
        mend=kind_of("gradients", RATE),
    ),
    read_as_differences(
        "gradients, read as differences",
        each_tensor(_gradient),
        says="gradients",
        mend=kind_of("gradients", RATE),
    ),
    read_as_differences(
        "start minus end, read as differences",
        each_tensor(lambda start, end: start - end),
        says="gradients",
        mend=kind_of("gradients", 1.0),
    ),
    Spoil("models saved after the aggregation", saved_after, says="after"),
    Spoil("replies that began earlier", late_replies, says="earlier|began"),
    Spoil("replies equal to the broadcast", each_tensor(lambda start, end: start), says="zero"),
    Spoil("replies that are all the mean", all_equal, says="equal"),
    Spoil("codes of differences", each_tensor(lambda start, end: codes(end - start))),
    Spoil("codes of weights", each_tensor(lambda start, end: codes(end))),
    Spoil("replies of 16 bits", each_tensor(lambda start, end: end.half()), is_harmless=True),
    Spoil("replies of zeros", lambda run: each_reply(run, zeros)),
    Spoil("a reply that is not a number", one_is_nan, is_unstorable=True),
    Spoil("weights times examples", lambda run: each_reply(run, numerators)),
    Spoil("middle of start and end, in half of the clients", halfway),
    Spoil("models of two rounds exchanged", swapped_models),
    Spoil(
        "numbers of steps, told as examples",
        each_count(lambda count: -(-count // 16)),
        is_possible=is_weighted,
    ),
    Spoil("truth states a round twice", truth=_twice, says="twice|once"),
    Spoil("truth names nobody", truth=_of_nobody, says="nobody"),
    Spoil("truth of a round that is not there", truth=_of_round_99, says="99"),
    Spoil("truth of four classes", truth=_of_four_classes, says="4|four|3 labels"),
    Spoil("examples of another scale", examples=lambda x, y: (x * 255, y)),
    Spoil("classes in another order", examples=lambda x, y: (x, (y + 1) % 3)),
)
"""Every way of this file."""
