"""Every known user has prior examples, as a candidate or in the holdout."""

from typing import Any

import pytest
import torch

from overheard.core.examples import Examples
from overheard.core.known_facts.known_users import KnownUsers
from overheard.core.parties import shadow_device

SOME = Examples(torch.zeros(2, 1), torch.tensor([0, 1]))


def test_refuses_a_user_who_is_both_candidate_and_holdout() -> None:
    with pytest.raises(ValueError, match=r"both priors and holdout: \['ann'\]"):
        KnownUsers({"ann": SOME, "bob": SOME}, {"ann": SOME})


@pytest.mark.parametrize(
    "given",
    [
        {"shadow_devices": {shadow_device(0): "eva"}},
        {"embeddings": {"eva": torch.zeros(3)}},
        {"attributes": {"hand": {"ann": "left", "eva": "right"}}},
    ],
    ids=["device", "embedding", "attribute"],
)
def test_refuses_knowledge_of_a_user_without_prior_examples(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"users without prior examples: \['eva'\]"):
        KnownUsers({"ann": SOME}, {"bob": SOME}, **given)
    KnownUsers({"ann": SOME}, {"eva": SOME}, **given)
