"""Attribute labels of known updates."""

import pytest
import torch

from overheard.core.errors import NeedsError
from overheard.core.known_facts.known_users import KnownUsers
from overheard.core.parties import client
from overheard.linkage.attribute_labels import read_attribute_labels
from overheard.linkage.known_updates import KnownUpdates, SenderUpdates
from overheard.linkage.multi_head_mlp import UNLABELLED
from overheard.questions.attribute.estimators.attribute_claims import pool_attribute_claims
from tests.runs.planted_users import make_prior

USERS = KnownUsers(
    {"ann": make_prior(1), "bob": make_prior(1)},
    {"eve": make_prior(1), "joe": make_prior(1), "kim": make_prior(1)},
    attributes={"hand": {"ann": "right", "bob": "both", "eve": "left", "joe": "right"}},
)

KNOWN = KnownUpdates(
    torch.zeros(6, 3),
    torch.tensor([0, 1, 2, 3, 4, 2]),
    torch.zeros(6, dtype=torch.long),
    torch.zeros(6, dtype=torch.long),
    ("ann", "bob", "eve", "joe", "kim"),
    2,
)


class TestAttributeLabels:
    def test_holdout_labels_only_users_who_take_no_part(self):
        found = read_attribute_labels(KNOWN, USERS, "hand", "holdout")
        assert found.values == ("both", "left", "right")
        assert found.labels.tolist() == [UNLABELLED, UNLABELLED, 1, 2, UNLABELLED, 1]
        assert found.labelled_rows().tolist() == [2, 3, 5]

    def test_refuses_a_single_value(self):
        one_value = KnownUsers(
            USERS.prior_examples,
            USERS.holdout,
            attributes={"hand": {"eve": "left", "ann": "right"}},
        )
        with pytest.raises(NeedsError, match="2 different values"):
            read_attribute_labels(KNOWN, one_value, None, "holdout")
        assert len(read_attribute_labels(KNOWN, one_value, None, "everyone").values) == 2

    def test_claims_the_geometric_mean_over_the_updates_of_a_sender(self):
        found = read_attribute_labels(KNOWN, USERS, "hand", "everyone")
        sent = SenderUpdates(
            torch.zeros(3, 3), (client(0), client(0), client(1)), torch.tensor([0, 1, 0])
        )
        probabilities = torch.tensor(
            [[0.8, 0.1, 0.1], [0.2, 0.4, 0.4], [0.2, 0.3, 0.5]]
        ).double()
        claims = pool_attribute_claims(found, sent, probabilities.log())
        # (0.8 * 0.2)^(1/2) = 0.4 and (0.1 * 0.4)^(1/2) = 0.2 twice: of 0.8 in all.
        assert claims[client(0)].numbers() == pytest.approx([0.5, 0.25, 0.25])
        assert claims[client(1)].numbers() == pytest.approx([0.2, 0.3, 0.5])
