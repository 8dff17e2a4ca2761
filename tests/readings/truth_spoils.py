"""Wrong truths and wrong examples of the attacker, devised from the requirements alone."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from torch import Tensor

from tests.readings.federations import SavedRun
from tests.readings.networks import CLASSES
from tests.readings.spoils import Spoil, Truth, is_import


def _has_gap(run: SavedRun) -> bool:
    return run.name == "partial participation"


def _each_entry(
    change: Callable[[dict[str, object]], Mapping[str, object]],
) -> Callable[[Truth], Truth]:
    """Return a change of each client's truth in each round."""
    return lambda truth: {**truth, "counts": [dict(change(one)) for one in truth["counts"]]}


def _each_label_count(change: Callable[[int], object]) -> Callable[[Truth], Truth]:
    """Return a change of each number of examples of a class."""

    def changed(entry: dict[str, object]) -> Mapping[str, object]:
        labels = entry["labels"]
        assert isinstance(labels, list)
        return {**entry, "labels": [change(count) for count in labels]}

    return _each_entry(changed)


def _party(change: Callable[[str], str]) -> Callable[[Truth], Truth]:
    """Return a change of the name of each client."""

    def changed(entry: dict[str, object]) -> Mapping[str, object]:
        return {**entry, "party": change(str(entry["party"]).removeprefix("client/"))}

    return _each_entry(changed)


def _exchanged_truth(truth: Truth) -> Truth:
    other = {"client/0": "client/1", "client/1": "client/0"}
    return _each_entry(
        lambda one: {**one, "party": other.get(str(one["party"]), one["party"])}
    )(truth)


def _of_failed_client(truth: Truth) -> Truth:
    """Return a truth of client 3 in round 1, in which it failed."""
    entry = {"round": 1, "party": "client/3", "labels": [16, 16, 16]}
    return {**truth, "counts": [*truth["counts"], entry]}


def _key_twice(text: str) -> str:
    """Return JSON whose first object states its labels twice."""
    return text.replace('"labels":', '"labels": [1, 2, 3], "labels":', 1)


FULL_WIDTH_ZERO = 0xFF10
"""Code point of the zero that East Asian texts set as wide as their letters."""


def _in_full_width(name: str) -> str:
    return "client/" + "".join(chr(FULL_WIDTH_ZERO + int(digit)) for digit in name)


def _as_texts(*names: str) -> Callable[[Tensor, Tensor], tuple[Tensor, np.ndarray]]:
    """Return a change of the labels to these texts."""
    return lambda inputs, labels: (inputs, np.array(names)[labels.numpy()])


def _without_last_class(inputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    keep = labels < CLASSES - 1
    return inputs[keep], labels[keep]


def _named_classes_backwards(run: SavedRun) -> SavedRun:
    """Return the run which states the names of its classes in the opposite order."""
    about = {**run.about, "class_names": ["c", "b", "a"], "input_shape": [4]}
    return replace(run, about=about)


OF_TRUTH = (
    Spoil("truth: names with zeros in front", truth=_party(lambda name: f"client/0{name}")),
    Spoil("truth: names without their kind", truth=_party(lambda name: name)),
    Spoil("truth: names in capitals", truth=_party(lambda name: f"CLIENT/{name}")),
    Spoil("truth: digits of full width", truth=_party(_in_full_width)),
    Spoil("truth: two clients exchanged", truth=_exchanged_truth),
    Spoil(
        "truth: rounds counted from 1",
        truth=_each_entry(lambda one: {**one, "round": int(str(one["round"])) + 1}),
        says="round",
    ),
    Spoil(
        "truth: rounds as texts",
        truth=_each_entry(lambda one: {**one, "round": str(one["round"])}),
    ),
    Spoil(
        "truth: a client that failed",
        truth=_of_failed_client,
        says="client/3",
        is_possible=_has_gap,
    ),
    Spoil("truth: counts as texts", truth=_each_label_count(str)),
    Spoil("truth: counts as shares", truth=_each_label_count(lambda count: count / 100)),
    Spoil("truth: counts below zero", truth=_each_label_count(lambda count: -count)),
    Spoil("truth: counts that are missing", truth=_each_label_count(lambda count: None)),
    Spoil("truth: counts of five epochs", truth=_each_label_count(lambda count: 5 * count)),
    Spoil(
        "truth: two classes of three",
        truth=_each_entry(lambda one: {**one, "labels": list(one["labels"])[:2]}),  # type: ignore[call-overload]
    ),
    Spoil("truth: a key stated twice", truth_text=_key_twice, says="twice|once|labels"),
)
"""What is written otherwise as the truth."""

OF_EXAMPLES = (
    Spoil("examples: labels from 1", examples=lambda x, y: (x, y + 1), is_harmless=True),
    Spoil("examples: labels as numbers with a point", examples=lambda x, y: (x, y.double())),
    Spoil("examples: labels as texts", examples=_as_texts("0", "1", "2"), is_harmless=True),
    Spoil("examples: labels as texts in another order", examples=_as_texts("9", "10", "11")),
    Spoil(
        "examples: labels as words in another order", examples=_as_texts("cat", "ant", "bee")
    ),
    Spoil("examples: without one class", examples=_without_last_class, says="class"),
    Spoil("examples: columns in another order", examples=lambda x, y: (x.flip(1), y)),
    Spoil("examples: standardised", examples=lambda x, y: ((x - x.mean(0)) / x.std(0) / 50, y)),
    Spoil(
        "classes named in the opposite order",
        change=_named_classes_backwards,
        examples=_as_texts("a", "b", "c"),
        is_consistent=True,
        is_possible=is_import,
    ),
)
"""What is otherwise in the attacker's examples."""

TRUTH_SPOILS = (*OF_TRUTH, *OF_EXAMPLES)
"""Every way of this file."""
