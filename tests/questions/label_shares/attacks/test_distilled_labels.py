import pytest
import torch

from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.messages import DistilledSet, Message
from overheard.core.parties import SERVER, Party, client
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.questions.label_shares.attacks.distilled_labels import DistilledLabels

WHO = client(0)

SHARED = torch.eye(3)
"""One example of each of three classes, all with rate 0.5."""


def said(number: int, sender: Party, labels: torch.Tensor, counts=(1.0, 1.0, 1.0)) -> Message:
    body = DistilledSet(
        torch.zeros(3, 2), labels, torch.full((3,), 0.5), torch.tensor(list(counts))
    )
    return Message(number, sender, frozenset({SERVER, WHO}), body)


def shares(*messages: Message, attack=None, knowledge: Knowledge | None = None):
    view = Transcript(messages).seen_by(SERVER)
    told = (attack or DistilledLabels()).infer(view, (WHO,), knowledge or Knowledge(3), Seed(0))
    return told[WHO]


MORE_OF_THE_FIRST = SHARED + torch.tensor([0.2, -0.1, -0.1])


def test_shares_equal_those_worked_out_by_hand() -> None:
    # Change 0.5 x 3 x (.2, -.1, -.1) = (.3, -.15, -.15): its deviation (n - 1) is .2598, so it
    # is (1.1547, -.5774, -.5774). The scale is sqrt(2 / 4) / 3 = .2357.
    told = shares(said(0, SERVER, SHARED), said(0, WHO, MORE_OF_THE_FIRST))
    whole = [1 / 3 + 0.2357 * 1.1547, 1 / 3 - 0.2357 * 0.5774, 1 / 3 - 0.2357 * 0.5774]
    assert told.shares.tolist() == pytest.approx(whole, abs=1e-4)
    assert told.absent.tolist() == [False] * 3


def test_rates_and_labels_both_count() -> None:
    slow = said(0, WHO, SHARED)
    faster = DistilledSet(
        slow.body.inputs, slow.body.labels, torch.tensor([0.5, 0.5, 0.9]), slow.body.counts
    )
    told = shares(said(0, SERVER, SHARED), Message(0, WHO, slow.readers, faster))
    assert int(told.shares.argmax()) == 2


def test_masked_classes_are_claimed_absent() -> None:
    told = shares(
        said(0, SERVER, SHARED), said(0, WHO, MORE_OF_THE_FIRST, counts=(1.0, 0.0, 1.0))
    )
    assert told.shares[1] == 0
    assert told.absent.tolist() == [False, True, False]
    assert float(told.shares.sum()) == pytest.approx(1)


def test_an_unchanged_set_gives_the_expected_shares() -> None:
    auxiliary = Examples(torch.zeros(4, 2), torch.tensor([0, 0, 1, 2]))
    told = shares(
        said(0, SERVER, SHARED),
        said(0, WHO, SHARED),
        knowledge=Knowledge(3, auxiliary=auxiliary),
    )
    assert told.shares.tolist() == pytest.approx([0.5, 0.25, 0.25])


def test_only_the_first_rounds_are_read() -> None:
    later = SHARED + torch.tensor([-0.1, -0.1, 0.2])
    messages = [said(0, SERVER, SHARED), said(0, WHO, MORE_OF_THE_FIRST)]
    for number in (1, 2):
        messages += [said(number, SERVER, SHARED), said(number, WHO, later)]
    first = shares(*messages, attack=DistilledLabels(most_rounds=1))
    assert int(first.shares.argmax()) == 0
    assert int(shares(*messages).shares.argmax()) == 2
    with pytest.raises(ValueError, match="1 or more"):
        DistilledLabels(most_rounds=0)
