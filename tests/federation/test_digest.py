from dataclasses import replace
from typing import Any

import pytest
import torch

from overheard.core.examples import Examples
from overheard.federation.digest import data_digest, data_digests
from overheard.federation.federation import Federation

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
