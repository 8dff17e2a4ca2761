import torch
from sklearn.datasets import load_digits

from overheard.data.content_hash import content_hashes
from overheard.data.datasets.digits import Digits


def test_no_image_is_in_both_parts() -> None:
    dataset = Digits().load(None)
    hashes = [content_hashes(part.inputs) for part in (dataset.train, dataset.test)]
    assert not torch.isin(hashes[0], hashes[1]).any()


def test_the_images_are_those_that_scikit_learn_loads() -> None:
    dataset, loaded = Digits().load(None), load_digits()
    images = torch.from_numpy(loaded.images / 16)
    inputs = torch.cat((dataset.train.inputs, dataset.test.inputs))
    labels = torch.cat((dataset.train.labels, dataset.test.labels))
    # Standardizing changes no order of grey values.
    assert torch.equal(labels.bincount(), torch.from_numpy(loaded.target).bincount())
    found = (labels.tolist(), inputs.flatten(1).argsort(dim=1, stable=True).tolist())
    expected = (loaded.target.tolist(), images.flatten(1).argsort(dim=1, stable=True).tolist())
    assert sorted(zip(*found, strict=True)) == sorted(zip(*expected, strict=True))
