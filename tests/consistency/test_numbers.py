"""Checks of numbers."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.algorithms.fed_avg import FedAvg
from overheard.algorithms.fed_avg_m import FedAvgM
from overheard.archive.manifest import DefenseRecord, Manifest
from overheard.archive.tensor_files import to_safetensors
from overheard.archive.weights import StoredWeights, tensor_shapes
from overheard.consistency.evidence import ClientReplies
from overheard.consistency.mean_replies import find_mean_replies
from overheard.consistency.proof import Reason
from overheard.consistency.samples import (
    BLOCK,
    MAX_NUMBERS_OF_MODEL,
    MAX_NUMBERS_OF_TENSOR,
    Sample,
    plan_sample,
)
from overheard.consistency.statement import StatedStep, parse_algorithm, state_step
from overheard.core.errors import TranscriptError
from overheard.core.mechanism import Mechanism
from overheard.core.messages import Message
from overheard.core.parties import Party, client
from tests.consistency.runs import (
    Model,
    Noise,
    Setting,
    TrueRun,
    as_differences,
    as_weights,
    check,
    minus,
    model_after,
    record,
    simulate,
)


@pytest.mark.parametrize(
    "text",
    [
        "FedAvgM(rate=1e308, momentum=0.9)",
        "FedAvgM(rate=1e200, momentum=0.9)",
        "FedAdam(rate=1e300)",
        "FedAdagrad(rate=1e308)",
    ],
)
def test_absurd_settings_of_a_stated_algorithm_change_no_conclusion(text: str) -> None:
    statement = StatedStep(parse_algorithm(text))
    assert statement.algorithm is not None
    right = check(record(simulate()), statement)
    assert right.finding.endswith("to the next broadcasts by the mean of the replies.")
    wrong = check(record(simulate(), as_differences), statement)
    assert wrong.outcome == "contradicts"
    assert wrong.otherwise == "they are differences that were read as weights"


def scaled(factor: float) -> list[list[Message]]:
    """A run whose numbers are stored in 64 bits, times a factor."""
    run = simulate()
    return record(
        run,
        lambda run, number, local, start: {
            name: factor * (local[name].double() - run.models[number][name].double())
            for name in local
        },
        model=lambda run, number: {
            name: factor * one.double() for name, one in run.models[number].items()
        },
    )


@pytest.mark.parametrize("factor", [1e-300, 1e-160, 1e150, 1e300, float("inf")])
def test_numbers_that_cannot_be_squared_prove_nothing(factor: float) -> None:
    found = check(scaled(factor))
    assert found.outcome == "cannot tell"
    assert found.reason in {Reason.NO_NEXT_BROADCAST, Reason.UNKNOWN_STEP}
    assert not found.allows_no_leak("updates")


def test_a_broadcast_that_is_not_finite_does_not_hide_the_updates() -> None:
    rounds = record(
        simulate(),
        as_weights,
        model=lambda run, number: {
            name: one + (torch.nan if number > 1 else 0.0)
            for name, one in run.models[number].items()
        },
    )
    assert check(rounds).outcome == "follows"


def test_noise_that_is_larger_than_any_number_is_not_taken_for_stated() -> None:
    mechanism = Mechanism(1e200, 1e100, 1e-5, "server", "server")
    defense = DefenseRecord("dp", "", "server", "", mechanism)
    manifest = Manifest(None, "", None, (defense,), (), None)
    statement = state_step(manifest)
    assert statement.noise == 0
    assert check(record(simulate(), as_differences), statement).outcome == "contradicts"
    assert check(record(simulate()), StatedStep(FedAvg(), 1e30)).outcome == "follows"


def test_hidden_weights_of_a_mean_do_not_explain_replies_of_an_absurd_size() -> None:
    def store(run: TrueRun, number: int, local: Model, start: Model) -> Model:
        return {name: 1e30 * one for name, one in minus(local, start).items()}

    found = check(record(simulate(), store))
    assert found.outcome == "contradicts"
    assert "more than 10,000 times as large as the model" in found.finding


@given(st.lists(st.integers(0, 300_000), min_size=1, max_size=8))
def test_samples_are_disjoint_parts_within_their_bounds(lengths: list[int]) -> None:
    plan = plan_sample({str(place): (n,) for place, n in enumerate(lengths)})
    for name, blocks in plan.blocks.items():
        ends = [0, *(stop for _, stop in blocks)]
        assert all(start >= end for (start, _), end in zip(blocks, ends, strict=False))
        assert 0 < blocks[-1][1] <= lengths[int(name)]
        assert plan.size(name) <= MAX_NUMBERS_OF_TENSOR
    assert sum(map(plan.size, plan.blocks)) <= max(MAX_NUMBERS_OF_MODEL, BLOCK * len(lengths))
    assert set(plan.blocks) == {str(place) for place, n in enumerate(lengths) if n}


def test_a_stored_sample_is_that_of_memory(tmp_path: Path) -> None:
    tensors = {"a": torch.randn(300, 400), "b": torch.randn(7)}
    path = tmp_path / "x.safetensors"
    path.write_bytes(to_safetensors(tensors))
    plan = plan_sample(tensor_shapes(tensors))
    stored = plan.read(StoredWeights(path, tensor_shapes(tensors)))
    flat = stored.flat(("a", "b"))
    assert torch.equal(flat, plan.read(tensors).flat(("a", "b")))
    assert len(flat) == MAX_NUMBERS_OF_TENSOR // 2 + 7
    # The first and the last number of a tensor are in the sample.
    assert flat[0] == tensors["a"][0, 0]
    assert flat[-8] == tensors["a"][-1, -1]


def test_running_statistics_are_left_out_unless_there_is_nothing_else() -> None:
    assert list(plan_sample({"w": (3,), "n.running_mean": (3,)}).blocks) == ["w"]
    assert list(plan_sample({"n.running_mean": (3,)}).blocks) == ["n.running_mean"]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_the_precision_is_that_of_the_digits(dtype: torch.dtype) -> None:
    numbers = torch.randn(500, generator=torch.Generator().manual_seed(0)).to(dtype)
    expected = max(torch.finfo(dtype).eps, 2**-21)
    assert Sample({"w": numbers}).precision == expected
    # A model of 16 bits may be stored in 32.
    assert Sample({"w": numbers.float()}).precision == expected


def test_round_numbers_tell_no_precision() -> None:
    assert Sample({"w": torch.arange(16.0)}).precision == 2**-21


def test_a_damaged_part_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(to_safetensors({"a": torch.ones(4)}))
    content = bytearray(path.read_bytes())
    content[-4:] = torch.tensor([torch.nan]).numpy().tobytes()
    path.write_bytes(bytes(content))
    with pytest.raises(TranscriptError, match="NaN"):
        plan_sample({"a": (4,)}).read(StoredWeights(path, {"a": (4,)}))


def test_refuses_a_tensor_that_no_file_can_hold() -> None:
    with pytest.raises(TranscriptError, match="that no file can hold"):
        plan_sample({"a": (2**40, 2**40)})


MEAN = Party("client/mean")


def with_mean(run: TrueRun) -> TrueRun:
    """Return the run in which the next model lies among the clients' in every round."""
    weights: list[Mapping[Party, Model]] = [
        {**one, MEAN: run.models[number + 1]} for number, one in enumerate(run.weights)
    ]
    return replace(run, weights=weights, examples={**run.examples, MEAN: 100})


def test_the_mean_among_the_replies_is_refused() -> None:
    proof = check(record(with_mean(simulate())))
    assert proof.outcome == "contradicts"
    (fault,) = [one for one in proof.faults if one.is_refusal]
    assert fault.sender == MEAN
    assert "leave the file of the mean out" in proof.mend


def test_a_reply_that_is_the_change_of_the_model_is_a_warning() -> None:
    # Under momentum the new model is no mean of the replies.
    proof = check(record(with_mean(simulate(Setting(FedAvgM(rate=1.0, momentum=0.5))))))
    (fault,) = [one for one in proof.faults if "the change of the model itself" in one.fault]
    assert (fault.sender, fault.is_refusal) == (MEAN, False)


def test_ordinary_replies_are_no_mean() -> None:
    assert check(record(simulate())).faults == ()


def test_two_clients_are_no_mean_of_each_other() -> None:
    run = simulate()
    two = {client(0), client(1)}
    weights = [{name: one[name] for name in one if name in two} for one in run.weights]
    proof = check(record(replace(run, weights=weights)))
    assert not [one for one in proof.faults if "the mean of all others" in one.fault]


def faulty(deltas: list[list[float]], shares: list[float]) -> list[Party]:
    """Return the senders whose replies, the same in two rounds, are a mean of the others."""
    numbers = torch.tensor(deltas)
    zero = torch.zeros(numbers.shape[1])
    senders = tuple(map(client, range(len(deltas))))
    one = ClientReplies(senders, tuple(shares), numbers, zero, {"c0": zero})
    return [fault.sender for fault in find_mean_replies([(0, one, 1.0), (1, one, 1.0)])]


def test_finds_a_mean_by_examples_and_a_plain_one_but_not_among_equal_replies() -> None:
    # The third is (3 a + b) / 4, the fourth of the next (a + b + c) / 3.
    assert faulty([[4, 0], [0, 8], [3, 2]], [0.6, 0.2, 0.2]) == [client(2)]
    assert faulty([[3, 0], [0, 3], [3, 3], [2, 2]], [0.25, 0.5, 0.1, 0.15]) == [client(3)]
    assert faulty([[1, 2], [1, 2], [1, 2]], [0.5, 0.3, 0.2]) == []
    # What is left has no examples, so that its mean by examples is not known.
    assert faulty([[4, 0], [0, 8], [3, 2]], [0.0, 0.0, 1.0]) == []


DEVIATION = 0.05


STATED = StatedStep(FedAvg(), noise=4 * DEVIATION)  # on the sum of four replies


SMALL = {"layer.weight": (4, 3), "layer.bias": (3,)}


def noisy_run(seed: int) -> TrueRun:
    return simulate(Setting(aggregate=Noise(seed, DEVIATION), shapes=SMALL))


def exchanged(run: TrueRun, number: int) -> Model:
    return run.models[{1: 3, 3: 1}.get(number, number)]


def test_noise_of_the_stated_size_follows_in_a_model_of_fifteen_numbers() -> None:
    outcomes = [check(record(noisy_run(seed)), STATED).outcome for seed in range(20)]
    assert outcomes == ["follows"] * 20


@pytest.mark.parametrize("seed", range(10))
def test_what_was_misread_is_told_from_noise(seed: int) -> None:
    run = noisy_run(seed)
    saved_after = check(record(run, model=model_after), STATED)
    assert saved_after.outcome == "contradicts"
    assert "after its aggregation" in saved_after.mend
    differences = check(record(run, as_differences), STATED)
    assert differences.outcome == "contradicts"
    assert "--kind differences" in differences.mend
    assert check(record(run, model=exchanged), STATED).outcome != "follows"


def test_noise_that_hides_the_replies_cannot_be_told() -> None:
    # Changes of 0.1 under noise of 1 in fifteen numbers and five rounds.
    run = simulate(Setting(aggregate=Noise(0, 1.0), shapes=SMALL))
    proof = check(record(run), StatedStep(FedAvg(), noise=4.0))
    assert (proof.outcome, proof.reason) == ("cannot tell", Reason.HIDDEN_BY_NOISE)
    assert not proof.allows_no_leak("updates")
    assert proof.allows_no_leak("means")
