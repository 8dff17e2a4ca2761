"""Pretrained weights are written, and read into a model that fits."""

from functools import partial
from pathlib import Path

import pytest
import torch

from overheard.core.errors import PlanError
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.learning.fitting.pretrained import pretrain
from overheard.learning.initialization import fresh_model, initial_weights
from overheard.learning.models.transformer import Transformer
from overheard.learning.sent_tensors import sent_tensors, unsent_tensors
from tests.learning.cases import TEXTS, pool_of

RECIPE = Recipe(rate=0.05, epochs=3, batch=5)
SETTINGS = {"width": 8, "depth": 1, "heads": 2}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A file of weights that were trained on thirty texts."""
    path = tmp_path_factory.mktemp("base") / "new folder" / "base.safetensors"
    build = partial(Transformer(**SETTINGS).build, TEXTS)
    pretrain(build, pool_of(TEXTS, torch.float32), RECIPE, path, seed=Seed(0))
    return str(path)


def test_training_on_public_examples_lowers_the_loss(tmp_path: Path):
    build, pool = partial(Transformer(**SETTINGS).build, TEXTS), pool_of(TEXTS, torch.float32)
    one, nine = (
        pretrain(
            build, pool, Recipe(rate=0.05, epochs=epochs, batch=5), tmp_path / "a", seed=Seed(0)
        )
        for epochs in (1, 9)
    )
    assert nine < one


def test_adapters_get_the_base_and_start_with_its_outputs(base: str):
    whole = fresh_model(partial(Transformer(**SETTINGS, base=base).build, TEXTS), Seed(1))
    adapted = fresh_model(
        partial(Transformer(**SETTINGS, base=base, rank=2).build, TEXTS), Seed(2)
    )
    fresh = fresh_model(partial(Transformer(**SETTINGS).build, TEXTS), Seed(1))
    texts = pool_of(TEXTS, torch.float32).inputs
    torch.testing.assert_close(adapted(texts), whole(texts))
    assert not torch.allclose(adapted(texts), fresh(texts))
    assert "table.weight" in unsent_tensors(adapted)
    assert "table.weight" in sent_tensors(whole)


def test_a_last_layer_of_other_classes_stays_fresh(base: str):
    task = Task(TEXTS.shape, ("yes", "no"), vocabulary=TEXTS.vocabulary)
    build = partial(Transformer(**SETTINGS, base=base).build, task)
    assert initial_weights(build, Seed(0))["last.weight"].shape == (2, 8)


def test_is_written_through_no_link(base: str, tmp_path: Path):
    victim, wanted = tmp_path / "victim", tmp_path / "base.safetensors"
    victim.write_text("precious")
    for planted in (wanted, tmp_path / "base.safetensors.partial"):
        planted.symlink_to(victim)
    build, pool = partial(Transformer(**SETTINGS).build, TEXTS), pool_of(TEXTS, torch.float32)
    pretrain(build, pool, RECIPE, wanted, seed=Seed(0))
    assert victim.read_text() == "precious"
    assert wanted.read_bytes() == Path(base).read_bytes()


def test_refuses_a_file_that_does_not_fit_or_cannot_be_read(base: str, tmp_path: Path):
    other = Task(TEXTS.shape, TEXTS.class_names, vocabulary=31)
    with pytest.raises(PlanError, match=r"table\.weight has the shape \(30, 8\)"):
        Transformer(**SETTINGS, base=base).build(other)
    with pytest.raises(PlanError, match=r"blocks\.1\..*which the model has not"):
        Transformer(**SETTINGS | {"depth": 1}, base=_with_another_block(base, tmp_path)).build(
            TEXTS
        )
    with pytest.raises(PlanError, match="cannot be read"):
        Transformer(**SETTINGS, base=str(tmp_path / "none")).build(TEXTS)


def _with_another_block(base: str, folder: Path) -> str:
    """A file with the weights of a deeper model."""
    build = partial(Transformer(**SETTINGS | {"depth": 2}).build, TEXTS)
    pretrain(build, pool_of(TEXTS, torch.float32), RECIPE, folder / "deeper", seed=Seed(0))
    return str(folder / "deeper")
