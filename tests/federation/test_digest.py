from dataclasses import replace
from typing import Any

import pytest
import torch

from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard.federation.digest import data_digest, data_digests
from overheard.federation.federation import Federation

INPUTS, LABELS = torch.tensor([[2.0], [4.0], [4.0], [4.0]]), torch.tensor([0, 1, 1, 1])


def test_the_same_data_give_the_same_digest_whatever_else_differs(small: Federation) -> None:
    same = replace(small, pool=Examples(INPUTS.clone(), LABELS.clone()), seed=Seed(6))
    assert data_digest(same) == data_digest(small)


def test_data_that_lie_crosswise_in_memory_are_the_same_data(small: Federation) -> None:
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
def test_another_example_or_holder_gives_another_digest(
    small: Federation, changes: dict[str, Any]
) -> None:
    assert data_digest(replace(small, **changes)) != data_digest(small)


def test_federations_that_share_a_pool_have_the_digests_that_each_has_alone(
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


def test_a_background_counts_and_a_run_without_one_is_as_it_was(small: Federation) -> None:
    # Written down before federations had a background.
    assert data_digest(small) == "ca76179bbe06947475da7bb032faa1118731029a"
    backgrounds = [
        Examples(INPUTS, LABELS),
        Examples(INPUTS + 1, LABELS),
        Examples(INPUTS, 1 - LABELS),
    ]
    digests = {data_digest(replace(small, background=one)) for one in backgrounds}
    assert len(digests | {data_digest(small)}) == 4
