from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from overheard.auditing.inputs import Resources
from overheard.data.datasets.cifar10 import Cifar10
from overheard.learning.models.logistic import Logistic
from overheard_studies.flip.samples import REDUCED, samples
from overheard_studies.values import ReproducedValue
from studies.tests.flip.planted import plant

pytestmark = pytest.mark.slow

TINY = replace(
    REDUCED[1],
    source=Cifar10(only=("cat", "dog", "frog"), shrink=8),
    model=Logistic(),
    examples=30,
    flip=replace(REDUCED[1].flip, first_rate=0.1, rate_rate=0.01, at_once=1),
    flip_rounds=12,
    samples=(4,),
    seeds=(0, 1),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("figure4")


@pytest.fixture(scope="module")
def values(folder: Path) -> Mapping[str, ReproducedValue]:
    plant(folder / "data")
    run = samples(scenarios=(TINY,), reduced=(TINY,)).run(
        folder / "run",
        quick=True,
        resources=Resources(data=folder / "data", workers=1),
        on_step=None,
    )
    return {one.name: one for one in run}


def test_images_are_similar_to_their_class_and_noise_is_not(
    values: Mapping[str, ReproducedValue],
) -> None:
    images, noise = (values[f"cifar10_{one}_own_class"].value for one in ("images", "noise"))
    assert images is not None
    assert noise is not None
    assert images > 0.9
    # 24 guesses at 1/3: 0.33, plus or minus 4 deviations of 0.1.
    assert noise < 0.75
    assert "a guess has 0.333" in values["cifar10_noise_own_class"].setting


def test_samples_are_reported_with_images_and_noise(
    values: Mapping[str, ReproducedValue],
) -> None:
    assert list(values) == [
        *(
            f"cifar10_{group}_{key}"
            for group in ("samples", "images", "noise")
            for key in ("own_class", "lead")
        ),
        "reading_obfuscated",
    ]
    margins = [values[f"cifar10_{one}_lead"].value for one in ("noise", "samples", "images")]
    # Distillation moves noise towards the class means, but not all the way.
    assert margins == sorted(margins, key=lambda one: one or 0.0)


@pytest.mark.usefixtures("values")
def test_each_class_is_drawn_with_its_soft_labels(folder: Path) -> None:
    page = (folder / "run" / "figures.html").read_text(encoding="utf-8")
    assert page.count(">original<") == 3
    for name in ("cat", "dog", "frog"):
        assert f'aria-label="Figure 4: cifar10, {name}"' in page
        # The caption of a sample has a name and a soft label of two digits.
        assert f">{name} 0." in page or f">{name} 1." in page
