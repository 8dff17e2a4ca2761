"""Federations: their settings, sampling and digests."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from overheard.algorithms.fed_avg import FedAvg
from overheard.archive.reader import read_round
from overheard.core.defense import LocalTraining
from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.parties import client, shadow_device
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.defenses.dp_fedavg import DpFedavg
from overheard.federation.cohort import client_epochs
from overheard.federation.digest import data_digest, data_digests
from overheard.federation.federation import Federation
from overheard.federation.run import check_stackable, run, split_into_stacks
from overheard.federation.sampling import draw_copies, draw_straggler_epochs
from overheard.federation.server import received_updates
from tests.federation.conftest import ClientDefense

NOBODY = Examples(torch.zeros(0, 1), torch.zeros(0, dtype=torch.int64))


OF_CLASS_2 = Examples(torch.zeros(4, 1), torch.tensor([0, 1, 1, 2]))


BELOW_0 = Examples(torch.zeros(4, 1), torch.tensor([0, 1, 1, -1]))


WIDE = Examples(torch.zeros(4, 2), torch.tensor([0, 1, 1, 0]))


TEXTS = Examples(torch.zeros(4, 1, dtype=torch.int64), torch.tensor([0, 1, 1, 0]))


class Still(ClientDefense):
    pass


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"rounds": 0}, "rounds must be 1 or more"),
        ({"rounds": 3}, "3 rounds and rows for 2"),
        ({"rows": [[torch.tensor([0])], []]}, r"the same clients, one or more, got \[0, 1\]"),
        ({"rows": [[], []]}, r"one or more, got \[0\]"),
        (
            {"rows": [[torch.tensor([0])], [torch.tensor([4])]]},
            "round 1 refers to rows",
        ),
        (
            {"rows": [[torch.tensor([-1])], [torch.tensor([0])]]},
            "round 0 refers to rows",
        ),
        ({"participation": 0.0}, "participation"),
        ({"participation": 1.1}, "participation"),
        ({"failure_rate": 1.0}, "failure_rate"),
        ({"failure_rate": float("nan")}, "failure_rate"),
        ({"test": NOBODY}, "an example or more"),
        ({"pool": OF_CLASS_2}, "between 0 and 1, got 0 to 2"),
        ({"test": BELOW_0}, "between 0 and 1, got -1 to 1"),
        ({"defenses": (Still(), Still())}, "each defense may occur once"),
        ({"background": OF_CLASS_2}, "between 0 and 1, got 0 to 2"),
        ({"background": WIDE}, r"like the pool's, \(1,\) of torch.float32, got \(2,\)"),
        ({"background": TEXTS}, r"torch.float32, got \(1,\) of torch.int64"),
        ({"shadows": -1}, "leave a client that is no shadow device, got -1"),
        ({"shadows": 2}, "leave a client that is no shadow device, got 2"),
    ],
)
def test_refuses_an_invalid_federation(
    small: Federation, changes: dict[str, Any], why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        replace(small, **changes)


class AtTheServer(Still):
    name = "at the server"
    enforced_at = "server"


def test_shadow_devices_skip_defenses_of_clients_unless_they_are_defended(
    small: Federation,
) -> None:
    defended = (Still(), AtTheServer())
    plain = replace(small, shadows=1, defenses=defended)
    assert plain.defenses_of(client(0)) == defended
    assert plain.defenses_of(shadow_device(0)) == defended[1:]
    adaptive = replace(plain, are_shadows_defended=True)
    assert adaptive.defenses_of(shadow_device(0)) == adaptive.defenses_of(client(0)) == defended


class Retrains(Still):
    def on_training(self, training: LocalTraining) -> LocalTraining:
        return training


def of(federation: Federation, clients: int) -> Federation:
    """The federation with only its first clients."""
    return replace(federation, rows=[held[:clients] for held in federation.rows])


@pytest.mark.parametrize(
    ("clients", "most", "cut"),
    [
        # 20 + 10 are 30, and 20 more would be 50.
        ((20, 10, 20), 32, [[0, 1], [2]]),
        ((20, 12, 1), 32, [[0, 1], [2]]),
        ((2, 2, 2, 2, 2), 4, [[0, 1], [2, 3], [4]]),
        # Nobody is parted from the others of a federation, however many they are.
        ((1, 20, 1), 8, [[0], [1], [2]]),
        ((20,), 1, [[0]]),
    ],
)
def test_stacks_hold_whole_federations_up_to_the_number_of_clients(
    crowd: Federation, clients: tuple[int, ...], most: int, cut: list[list[int]]
) -> None:
    federations = [of(crowd, number) for number in clients]
    assert [list(stack) for stack in split_into_stacks(federations, most)] == cut


def test_only_sampled_clients_count(crowd: Federation) -> None:
    # A quarter of 20 clients are 5: six times that fits where twice 20 do not.
    quarter = replace(crowd, participation=0.25)
    assert [len(stack) for stack in split_into_stacks([crowd] * 6, 32)] == [1] * 6
    assert [len(stack) for stack in split_into_stacks([quarter] * 7, 32)] == [6, 1]


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"model": "three weights"}, "model"),
        ({"task": Task((1,), ("a", "b", "c"))}, "task"),
        ({"recipe": Recipe(rate=0.5, epochs=1, batch=8)}, "recipe"),
        ({"engine": "stacked"}, "engine"),
        ({"workers": 1}, "workers"),
        ({"device": "cuda"}, "device"),
        ({"defenses": (Retrains(),)}, "defenses of the training"),
    ],
)
def test_refuses_federations_with_different_training(
    small: Federation, changes: dict[str, Any], what: str
) -> None:
    with pytest.raises(ValueError, match=f"federation 2 differs from federation 0 in {what},"):
        check_stackable([small, small, replace(small, **changes)])


def test_refuses_federations_with_different_rounds(small: Federation) -> None:
    with pytest.raises(ValueError, match="in rounds,"):
        check_stackable([small, replace(small, rounds=1, rows=small.rows[:1])])


def test_poisson_sampling_draws_each_client_by_itself() -> None:
    drawn = [draw_copies(10, 0.3, "poisson", Seed(number)) for number in range(600)]
    sizes = [len(one) for one in drawn]
    # Mean 3 and variance 2.1 of a binomial; the standard error of the mean is 0.06.
    assert sum(sizes) / 600 == pytest.approx(3, abs=0.25)
    assert min(sizes) == 0
    assert max(sizes) > 5
    assert all(copies == 1 for one in drawn for copies in one.values())


def test_with_replacement_a_client_may_be_drawn_twice() -> None:
    drawn = [draw_copies(4, 1.0, "with_replacement", Seed(number)) for number in range(200)]
    assert all(sum(one.values()) == 4 for one in drawn)
    assert any(max(one.values()) > 1 for one in drawn)
    assert any(len(one) < 4 for one in drawn)


def test_stragglers_train_for_fewer_epochs_but_never_for_none() -> None:
    drawn = [draw_straggler_epochs(3, 0.5, Seed(number)) for number in range(400)]
    assert set(drawn) == {1, 2, 3}
    # Half are slow; the standard error is 0.025.
    assert drawn.count(3) / 400 == pytest.approx(0.5, abs=0.1)
    assert draw_straggler_epochs(1, 1.0, Seed(0)) == 1


def test_a_client_keeps_its_epochs_in_all_rounds(crowd: Federation) -> None:
    unequal = replace(crowd, epochs_range=(1, 9))
    of_rounds = [
        [client_epochs(unequal, number, party) for party in unequal.clients]
        for number in range(3)
    ]
    assert of_rounds[0] == of_rounds[1] == of_rounds[2]
    assert len(set(of_rounds[0])) > 3
    assert client_epochs(crowd, 0, crowd.clients[0]) is None


def test_a_client_that_is_drawn_twice_sends_one_update_that_counts_twice(
    crowd: Federation, tmp_path: Path
) -> None:
    again = replace(crowd, sampling="with_replacement")
    run(again, tmp_path)
    received = received_updates(again, 0, read_round(tmp_path, 0))
    assert len(received) < 20
    assert sum(one.copies for one in received) == 20
    equal = replace(again, algorithm=FedAvg(mean="equal"))
    factors = equal.algorithm.factors(received)
    assert factors == pytest.approx([one.copies / 20 for one in received])


def test_noise_for_single_draws_does_not_cover_replacement(small: Federation) -> None:
    with pytest.raises(PlanError, match="drawn twice"):
        replace(small, sampling="with_replacement", defenses=(DpFedavg(1.0, 1.0),))


INPUTS, LABELS = torch.tensor([[2.0], [4.0], [4.0], [4.0]]), torch.tensor([0, 1, 1, 1])


def test_the_digest_does_not_depend_on_memory_layout(small: Federation) -> None:
    wide = torch.arange(8.0).reshape(4, 2)
    crosswise = wide.T.contiguous().T
    digests = {
        data_digest(replace(small, pool=Examples(one, LABELS))) for one in (wide, crosswise)
    }
    assert len(digests) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"pool": Examples(INPUTS + 1, LABELS)},
        {"pool": Examples(INPUTS, 1 - LABELS)},
        {"test": Examples(INPUTS, 1 - LABELS)},
        {"rows": [[torch.tensor([0, 1]), torch.tensor([2, 3])]] * 2},
        {"rows": [[torch.tensor([1, 2, 3]), torch.tensor([0])]] * 2},
    ],
)
def test_the_digest_depends_on_examples_and_rows(
    small: Federation, changes: dict[str, Any]
) -> None:
    assert data_digest(replace(small, **changes)) != data_digest(small)


def test_a_shared_pool_does_not_change_digests(
    small: Federation,
) -> None:
    others = [
        replace(small, rows=[[torch.tensor([0, 1]), torch.tensor([2, 3])]] * 2),
        replace(small, test=Examples(INPUTS, 1 - LABELS)),
        replace(small, pool=Examples(INPUTS + 1, LABELS)),
    ]
    together = data_digests([small, *others, small])
    assert together == tuple(map(data_digest, [small, *others, small]))
    assert len(set(together)) == 4


def test_the_digest_includes_a_background_only_if_there_is_one(small: Federation) -> None:
    # The digest of a federation without background; stored transcripts contain it.
    assert data_digest(small) == "ca76179bbe06947475da7bb032faa1118731029a"
    backgrounds = [
        Examples(INPUTS, LABELS),
        Examples(INPUTS + 1, LABELS),
        Examples(INPUTS, 1 - LABELS),
    ]
    digests = {data_digest(replace(small, background=one)) for one in backgrounds}
    assert len(digests | {data_digest(small)}) == 4
