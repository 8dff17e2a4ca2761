from dataclasses import replace
from pathlib import Path

import pytest

from overheard.algorithms.fed_avg import FedAvg
from overheard.archive.reader import read_round
from overheard.core.errors import PlanError
from overheard.core.seeds import Seed
from overheard.defenses.dp_fedavg import DpFedavg
from overheard.federation.cohort import client_epochs
from overheard.federation.federation import Federation
from overheard.federation.run import run
from overheard.federation.sampling import draw_copies, draw_straggler_epochs
from overheard.federation.server import received_updates


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
