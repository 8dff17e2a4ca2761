import pytest
import torch

from overheard.core.parties import SERVER
from overheard.questions.identity.attacks.reidentify import ReidentifyKnn
from overheard.questions.identity.estimators.unit_updates import (
    join_parts,
    read_unit_updates,
)

THREE = ("last_bias", -1, "all")


def test_every_part_has_the_same_length_in_the_joined_vector() -> None:
    # 3-4-5 at length 1 is .6, .8; two parts of length 1 together have length 2 ** .5.
    joined = join_parts([torch.tensor([[3.0, 4.0]]), torch.tensor([[0.01]])])
    half = 0.5**0.5
    assert joined[0].tolist() == pytest.approx([0.6 * half, 0.8 * half, half])


def test_a_part_that_is_zero_stays_zero() -> None:
    joined = join_parts([torch.zeros(1, 2), torch.tensor([[-7.0]])])
    assert joined[0].tolist() == [0.0, 0.0, -1.0]


@pytest.mark.parametrize("layers", [(), (-1, -1), ("all", -1, "all")])
def test_refuses_no_part_and_repeated_parts(layers) -> None:
    with pytest.raises(ValueError, match="layer must name one part or more"):
        ReidentifyKnn(layer=layers)


def test_one_part_in_a_tuple_is_that_part(different) -> None:
    view = different.transcript.seen_by(SERVER)
    one, same = (read_unit_updates(view, different.targets, part) for part in (-1, (-1,)))
    assert one.vectors.equal(same.vectors)
    assert one.senders == same.senders


def test_several_parts_keep_the_similarities_of_each(different) -> None:
    # The inner product of joined vectors is the mean of those of the parts.
    view = different.transcript.seen_by(SERVER)
    joined = read_unit_updates(view, different.targets, THREE).vectors
    parts = [read_unit_updates(view, different.targets, part).vectors for part in THREE]
    mean = sum(part @ part.T for part in parts) / len(parts)
    assert torch.allclose(joined @ joined.T, mean, atol=1e-5)
