import torch

from overheard.data.content_hash import content_hashes
from overheard.data.datasets.digits import Digits


def test_the_parts_are_fixed_and_balanced() -> None:
    one, again = Digits().load(None), Digits().load(None)
    assert one.train.inputs.equal(again.train.inputs)
    assert (len(one.train), len(one.test)) == (1497, 300)
    counts = one.test.label_counts(10)
    # 1797 images, 174 to 183 of each digit: 300 * 174 / 1797 = 29.05, 300 * 183 / 1797 = 30.6.
    assert int(counts.min()) >= 29
    assert int(counts.max()) <= 31


def test_no_image_is_in_both_parts() -> None:
    dataset = Digits().load(None)
    hashes = [content_hashes(part.inputs) for part in (dataset.train, dataset.test)]
    assert not torch.isin(hashes[0], hashes[1]).any()
