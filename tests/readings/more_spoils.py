"""Ways to read a run wrongly, devised from the requirements alone, without the check.

Left out is what no message can show: the replies of two clients exchanged together with their
numbers of examples, all numbers of examples multiplied by one number, all differences
multiplied by one number (as a server's rate would).
"""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from tests.readings.channels import next_model
from tests.readings.federations import RATE, Reply, Round, SavedRun, Tensors, clipped
from tests.readings.spoils import (
    Change,
    Spoil,
    codes,
    each_count,
    each_reply,
    each_tensor,
    is_import,
    is_weighted,
    kind_of,
    read_as_differences,
    takes_kind,
)


def _from(origin: Callable[[SavedRun, int], Tensors]) -> Change:
    """Return replies as differences to a model of the run, which is given for each round."""

    def changed(run: SavedRun) -> SavedRun:
        return _each(run, lambda number, name, end: _minus(end, origin(run, number)))

    return changed


def _each(run: SavedRun, change: Callable[[int, str, Tensors], Tensors]) -> SavedRun:
    """Return the run with other weights in each reply: of the round, the client, the end."""
    rounds = [
        Round(
            one.start,
            {
                name: reply and replace(reply, weights=change(number, name, reply.weights))
                for name, reply in one.replies.items()
            },
        )
        for number, one in enumerate(run.rounds)
    ]
    return replace(run, rounds=tuple(rounds))


def _minus(one: Tensors, other: Tensors) -> Tensors:
    return {name: tensor - other[name] for name, tensor in one.items()}


def _mixed(start: Tensors, end: Tensors, share: float) -> Tensors:
    """Return the model at this share of the way from the start to the end."""
    return {name: start[name] + share * (tensor - start[name]) for name, tensor in end.items()}


def _first_as_differences(run: SavedRun) -> SavedRun:
    """Return the run in which the first client sends differences, the others weights."""

    def change(number: int, name: str, end: Tensors) -> Tensors:
        return _minus(end, run.rounds[number].start) if name == "0" else end

    return _each(run, change)


def _later_as_differences(run: SavedRun) -> SavedRun:
    """Return the run whose clients sent weights in the first half, then differences."""

    def change(number: int, name: str, end: Tensors) -> Tensors:
        is_late = number >= len(run.rounds) // 2
        return _minus(end, run.rounds[number].start) if is_late else end

    return _each(run, change)


def _second_tensors_as_differences(
    start: Tensors, end: Tensors, examples: int | None
) -> Tensors:
    """Return weights, of which every second tensor is a difference."""
    return {
        name: tensor - start[name] if place % 2 else tensor
        for place, (name, tensor) in enumerate(end.items())
    }


def _last_tensors_unchanged(start: Tensors, end: Tensors, examples: int | None) -> Tensors:
    """Return weights whose last two tensors are as they were sent out."""
    last = list(end)[-2:]
    return {name: start[name] if name in last else tensor for name, tensor in end.items()}


def _scheduled_gradients(run: SavedRun) -> SavedRun:
    """Return gradients of a rate that halves in every round."""

    def change(number: int, name: str, end: Tensors) -> Tensors:
        start, rate = run.rounds[number].start, RATE * 0.5**number
        return {one: (start[one] - tensor) / rate for one, tensor in end.items()}

    return _each(run, change)


def _times_examples(start: Tensors, end: Tensors, examples: int | None) -> Tensors:
    """Return differences times the numbers of examples, as a client sums them."""
    return {name: (tensor - start[name]) * (examples or 1) for name, tensor in end.items()}


def _clipped_afterwards(start: Tensors, end: Tensors, examples: int | None) -> Tensors:
    """Return replies of one norm, which is below that of every update."""
    return clipped(start, end, 0.05)


def _noised_afterwards(run: SavedRun) -> SavedRun:
    """Return replies with noise as large as the updates, which the server did not read."""
    generator = torch.Generator().manual_seed(5)

    def change(start: Tensor, end: Tensor) -> Tensor:
        spread = (end - start).square().mean().sqrt()
        return end + spread * torch.randn(end.shape, generator=generator)

    return each_tensor(change)(run)


def _largest_only(start: Tensor, end: Tensor) -> Tensor:
    """Return the weights after the largest tenth of the changes."""
    change = end - start
    least = change.abs().flatten().topk(max(1, change.numel() // 10)).values.min()
    return start + torch.where(change.abs() >= least, change, torch.zeros(()))


def _rows_as_codes(start: Tensor, end: Tensor) -> Tensor:
    """Return int8 codes of the difference, whose scale is another in each row."""
    change = (end - start).reshape(len(end), -1)
    scales = change.abs().amax(dim=1, keepdim=True) / 127
    return (change / scales.clamp_min(1e-12)).round().to(torch.int8).reshape(end.shape).float()


def _bytes(start: Tensor, end: Tensor) -> Tensor:
    """Return codes of the weights from 0 to 255, with the zero point 128."""
    return (codes(end) + 128).clamp(0, 255)


def _in_column_order(tensor: Tensor) -> Tensor:
    return tensor.T.reshape(tensor.shape) if tensor.ndim == 2 else tensor


def _every_model(change: Callable[[Tensors], Tensors]) -> Change:
    """Return a change of all models, those that were sent out and the replies."""

    def changed(run: SavedRun) -> SavedRun:
        replies = each_reply(run, lambda start, end, examples: change(end))
        rounds = tuple(Round(change(one.start), one.replies) for one in replies.rounds)
        return replace(run, rounds=rounds, final=change(run.final))

    return changed


def _columns_first(model: Tensors) -> Tensors:
    return {name: _in_column_order(tensor) for name, tensor in model.items()}


def _prefixed(model: Tensors) -> Tensors:
    return {f"module.{name}": tensor for name, tensor in model.items()}


def _unnamed(model: Tensors) -> Tensors:
    return {f"arr_{place}": tensor for place, tensor in enumerate(model.values())}


def _unnamed_backwards(model: Tensors) -> Tensors:
    """Return the tensors without their names, last ones first."""
    return _unnamed(dict(reversed(model.items())))


def _starts(change: Callable[[SavedRun, int], Tensors]) -> Change:
    """Return the run with other models in place of those that were sent out."""

    def changed(run: SavedRun) -> SavedRun:
        rounds = [
            Round(change(run, number), one.replies) for number, one in enumerate(run.rounds)
        ]
        return replace(run, rounds=tuple(rounds))

    return changed


def _start_before(run: SavedRun, number: int) -> Tensors:
    return run.rounds[max(0, number - 1)].start


def _late_models(run: SavedRun) -> SavedRun:
    """Return the run whose models were all saved one round late."""
    return replace(_starts(_start_before)(run), final=run.rounds[-1].start)


def _a_clients_model(run: SavedRun, number: int) -> Tensors:
    """Return the first reply of the round."""
    return next(one for one in run.rounds[number].replies.values() if one is not None).weights


def _smoothed_start(run: SavedRun, number: int) -> Tensors:
    """Return the mean of all models until this one, the latest counting most."""
    model = run.rounds[0].start
    for one in run.rounds[1 : number + 1]:
        model = _mixed(model, one.start, 0.3)
    return model


def _other_run(run: SavedRun) -> SavedRun:
    assert run.again is not None
    return run.again(seed=77)


def _starts_of_other_run(run: SavedRun) -> SavedRun:
    other = _other_run(run)
    return _starts(lambda _, number: other.rounds[number].start)(run)


def _replies_of_other_run(run: SavedRun) -> SavedRun:
    other = _other_run(run)
    rounds = [
        Round(one.start, second.replies)
        for one, second in zip(run.rounds, other.rounds, strict=True)
    ]
    return replace(run, rounds=tuple(rounds))


def _smoothed_replies(run: SavedRun) -> SavedRun:
    """Return replies that each client averages over its rounds."""
    means = dict[str, Tensors]()

    def change(number: int, name: str, end: Tensors) -> Tensors:
        means[name] = _mixed(means.get(name, end), end, 0.3)
        return means[name]

    return _each(run, change)


def _replies_of_round_before(run: SavedRun) -> SavedRun:
    """Return the run whose replies were filed one round late; those of round 0 twice."""
    rounds = [
        Round(one.start, run.rounds[max(0, number - 1)].replies)
        for number, one in enumerate(run.rounds)
    ]
    return replace(run, rounds=tuple(rounds))


def _stale_client(run: SavedRun) -> SavedRun:
    """Return the run in which the first client's file is never replaced."""
    first = run.rounds[0].replies["0"]
    assert first is not None
    return _each(run, lambda number, name, end: first.weights if name == "0" else end)


def _twin(run: SavedRun) -> SavedRun:
    """Return the run in which client 1's files are copies of client 0's."""

    def change(number: int, name: str, end: Tensors) -> Tensors:
        first = run.rounds[number].replies.get("0")
        return first.weights if name == "1" and first is not None else end

    return _each(run, change)


def _exchanged_in_one_round(run: SavedRun) -> SavedRun:
    """Return the run in which clients 0 and 1 have each other's weights in round 1."""
    weights = {name: reply.weights for name, reply in run.rounds[1].replies.items() if reply}
    other = {"0": "1", "1": "0"}

    def change(number: int, name: str, end: Tensors) -> Tensors:
        return weights[other[name]] if number == 1 and name in other else end

    return _each(run, change)


def _reordered(order: tuple[int, ...]) -> Change:
    """Return the run with these rounds in this order."""
    return lambda run: replace(run, rounds=tuple(run.rounds[number] for number in order))


def _mean_as_client(run: SavedRun) -> SavedRun:
    """Return the run in which the mean of each round lies among the clients' files."""
    rounds = []
    for number, one in enumerate(run.rounds):
        total = sum(reply.examples or 0 for reply in one.replies.values() if reply is not None)
        replies = {**one.replies, "99": Reply(next_model(run, number), total)}
        rounds.append(Round(one.start, replies))
    return replace(run, rounds=tuple(rounds))


def _without_server_momentum(run: SavedRun) -> SavedRun:
    """Return the run whose saved models are the means of replies, before the momentum."""

    def change(run: SavedRun, number: int) -> Tensors:
        if number == 0:
            return run.rounds[0].start
        replies = [one for one in run.rounds[number - 1].replies.values() if one is not None]
        total = sum(one.examples or 0 for one in replies)
        return {
            name: sum(one.weights[name] * ((one.examples or 0) / total) for one in replies)
            for name in replies[0].weights
        }

    return _starts(change)(run)


def _counts(change: Callable[[SavedRun, int], object]) -> Change:
    """Return a change of each number of examples, to whatever a program may write."""
    return lambda run: each_count(lambda count: change(run, count))(run)  # type: ignore[arg-type, return-value]


def _total(run: SavedRun) -> int:
    return sum(reply.examples or 0 for reply in run.rounds[0].replies.values() if reply)


def _reversed_counts(run: SavedRun) -> SavedRun:
    """Return the run in which the list of numbers of examples is in the opposite order."""
    rounds = []
    for one in run.rounds:
        counts = [reply and reply.examples for reply in one.replies.values()]
        replies = {
            name: reply and replace(reply, examples=count)
            for (name, reply), count in zip(one.replies.items(), reversed(counts), strict=True)
        }
        rounds.append(Round(one.start, replies))
    return replace(run, rounds=tuple(rounds))


def _has_no_gap(run: SavedRun) -> bool:
    return run.name != "partial participation"


def _has_server_momentum(run: SavedRun) -> bool:
    return run.name == "server momentum"


MORE_SPOILS = (
    read_as_differences(
        "differences to the next broadcast",
        _from(next_model),
    ),
    read_as_differences(
        "differences to the first model",
        _from(lambda run, number: run.rounds[0].start),
    ),
    Spoil(
        "gradients, with ten times the rate",
        each_tensor(lambda start, end: (start - end) / RATE),
        options={"kind": "gradients", "rate": 10 * RATE},
        is_consistent=True,  # as a server does whose rate is 0.1
        is_possible=takes_kind,
    ),
    Spoil(
        "gradients of a falling rate, with one rate",
        _scheduled_gradients,
        options={"kind": "gradients", "rate": RATE},
        is_possible=takes_kind,
    ),
    Spoil(
        "weights, read as gradients",
        options={"kind": "gradients", "rate": RATE},
        says="weights",
        mend=kind_of("weights"),
        is_possible=takes_kind,
    ),
    Spoil(
        "differences, read as gradients",
        each_tensor(lambda start, end: end - start),
        options={"kind": "gradients", "rate": RATE},
        says="differences",
        mend=kind_of("differences"),
        is_possible=takes_kind,
    ),
    Spoil(
        "differences times examples, read as differences",
        lambda run: each_reply(run, _times_examples),
        options={"kind": "differences"},
        is_possible=lambda run: takes_kind(run) and is_weighted(run),
    ),
    Spoil("one client sends differences", _first_as_differences),
    Spoil("differences from the third round on", _later_as_differences),
    Spoil(
        "every second tensor a difference",
        lambda run: each_reply(run, _second_tensors_as_differences),
    ),
    Spoil("last layer not saved", lambda run: each_reply(run, _last_tensors_unchanged)),
    Spoil(
        "models said to be saved afterwards",
        options={"saved": "after"},
        says="before",
        mend=lambda run: {"saved": "before"},
        is_possible=is_import,
    ),
    Spoil("models of the round before", _late_models, says="round before"),
    Spoil("a client's model in place of the broadcast", _starts(_a_clients_model)),
    Spoil("broadcasts averaged over rounds", _starts(_smoothed_start)),
    Spoil("broadcasts of another run", _starts_of_other_run),
    Spoil("replies of another run", _replies_of_other_run),
    Spoil("replies averaged over rounds", _smoothed_replies),
    Spoil("replies filed a round late", _replies_of_round_before, is_possible=_has_no_gap),
    Spoil("a client's first file in every round", _stale_client),
    Spoil("a client's files copied from another", _twin, says="equal|same|client/1"),
    Spoil("weights of two clients exchanged", _exchanged_in_one_round, is_possible=is_weighted),
    Spoil("a round recorded twice", _reordered((0, 1, 1, 2, 3))),
    Spoil("a round left out", _reordered((0, 2, 3))),
    Spoil("rounds in the opposite order", _reordered((3, 2, 1, 0))),
    Spoil("the mean among the clients", _mean_as_client, says="99|mean|equal"),
    Spoil(
        "models before the server's momentum",
        _without_server_momentum,
        is_possible=_has_server_momentum,
    ),
    read_as_differences(
        "codes by row, read as differences",
        each_tensor(_rows_as_codes),
        says="code|whole",
    ),
    Spoil("codes of weights with a zero point", each_tensor(_bytes), says="code|whole"),
    read_as_differences(
        "signs of differences, read as differences",
        each_tensor(lambda start, end: (end - start).sign()),
    ),
    Spoil("replies clipped afterwards", lambda run: each_reply(run, _clipped_afterwards)),
    Spoil("noise added afterwards", _noised_afterwards),
    Spoil("only the largest changes saved", each_tensor(_largest_only)),
    Spoil("replies of 64 bits", each_tensor(lambda start, end: end.double()), is_harmless=True),
    Spoil("replies rounded to 8 bits", each_tensor(lambda start, end: end.bfloat16().float())),
    Spoil(
        "matrices of replies in column order",
        each_tensor(lambda start, end: _in_column_order(end)),
    ),
    Spoil("all matrices in column order", _every_model(_columns_first), is_consistent=True),
    Spoil("names with a prefix", _every_model(_prefixed), is_harmless=True),
    Spoil("tensors without names", _every_model(_unnamed), is_harmless=True),
    Spoil(
        "tensors without names, backwards", _every_model(_unnamed_backwards), is_harmless=True
    ),
    Spoil(
        "a prefix in replies only",
        lambda run: each_reply(run, lambda start, end, examples: _prefixed(end)),
        is_unstorable=True,
    ),
    Spoil(
        "shares of the examples in place of counts",
        _counts(lambda run, count: count / _total(run)),
        is_unstorable=True,
        is_possible=is_weighted,
    ),
    Spoil(
        "counts of the whole federation",
        _counts(lambda run, count: _total(run)),
        is_possible=is_weighted,
    ),
    Spoil("each client counted once", _counts(lambda run, count: 1), is_possible=is_weighted),
    Spoil("counts in the opposite order", _reversed_counts, is_possible=is_weighted),
    Spoil("negative counts", _counts(lambda run, count: -count), is_unstorable=True),
    Spoil("counts of zero", _counts(lambda run, count: 0)),
    Spoil(
        "counts as texts",
        _counts(lambda run, count: str(count)),
        is_unstorable=True,
        is_possible=lambda run: run.channel != "flower_new",  # which sends no such count
    ),
)
"""What is sent or saved otherwise than it is read."""
