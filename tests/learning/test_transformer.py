"""The transformer, and its adapters by the formula of the paper."""

from functools import partial
from pathlib import Path

import pytest
import torch
from torch import nn

from overheard.core.errors import PlanError
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.learning.initialization import fresh_model, initial_weights
from overheard.learning.models.transformer import AdaptedLinear, Transformer, pretrain
from overheard.learning.sent_tensors import sent_tensors, unsent_tensors
from overheard.learning.train import train_cohort
from overheard.testing.model import check_model
from tests.learning.cases import (
    CLIENTS,
    RECIPES,
    SEED,
    TEXTS,
    largest_difference,
    plain_loop,
    pool_of,
    start_of,
)

SMALL = Transformer(width=8, depth=2, heads=2)
ADAPTED = Transformer(width=8, depth=2, heads=2, rank=2, adapted=("query", "narrow"))


@pytest.mark.parametrize("model", [SMALL, ADAPTED], ids=["whole", "adapted"])
def test_fulfils_the_contract_of_models(model):
    check_model(model, TEXTS)


def test_has_the_parameters_counted_by_hand():
    words = Task((10,), tuple(str(word) for word in range(5000)), vocabulary=5000)

    def count(model: Transformer) -> int:
        weights = initial_weights(partial(model.build, words), Seed(0))
        return sum(one.numel() for one in weights.values())

    # words 5,000 x 256; a block: 4 (256 + 1) 256 + (256 + 1) 1,024 + (1,024 + 1) 256, and
    # 2 x 2 x 256 of its norms; the last norm and layer: 2 x 256 + (256 + 1) 5,000
    block = 4 * 257 * 256 + 257 * 1024 + 1025 * 256 + 4 * 256
    assert count(Transformer()) == 1_280_000 + 3 * block + 512 + 1_285_000
    # two adapters of 8 (256 + 256) in each of 3 blocks, and the last layer
    assert count(Transformer(rank=8)) == 3 * 2 * 8 * 512 + 1_285_000


def test_an_adapter_adds_the_product_of_the_formula():
    layer = AdaptedLinear(5, 3, rank=2, alpha=6.0).double()
    inputs = torch.randn(4, 5, generator=Seed(1).generator(), dtype=torch.float64)
    plain = inputs @ layer.weight.T + layer.bias
    assert torch.equal(layer(inputs), plain)  # B starts at 0
    with torch.no_grad():
        layer.expand.copy_(torch.arange(6.0).view(3, 2))
    # Hu et al. 2021, section 4.1: h = W x + alpha / r  B A x
    expected = plain + 6 / 2 * inputs @ (layer.expand @ layer.reduce).T
    torch.testing.assert_close(layer(inputs), expected, atol=1e-12, rtol=0)


def test_only_adapters_and_the_last_layer_are_sent():
    network = ADAPTED.build(TEXTS)
    assert sorted(sent_tensors(network)) == [
        "blocks.0.narrow.expand",
        "blocks.0.narrow.reduce",
        "blocks.0.query.expand",
        "blocks.0.query.reduce",
        "blocks.1.narrow.expand",
        "blocks.1.narrow.reduce",
        "blocks.1.query.expand",
        "blocks.1.query.reduce",
        "last.bias",
        "last.weight",
    ]
    assert "table.weight" in unsent_tensors(network)
    assert all("position" not in name for name in sent_tensors(SMALL.build(TEXTS)))


@pytest.mark.parametrize("model", [SMALL, ADAPTED], ids=["whole", "adapted"])
def test_trains_like_a_plain_loop(model):
    build = partial(model.build, TEXTS)
    start, pool = start_of(build), pool_of(TEXTS, torch.float64)

    def built_alike() -> nn.Module:
        return fresh_model(build, Seed(0)).double()

    for each in train_cohort(
        build, start, pool, CLIENTS[:2], RECIPES["sgd"], seed=SEED, round=3
    ):
        change, _ = plain_loop(built_alike, start, pool, each.client, RECIPES["sgd"])
        # The frozen part is drawn in float32 in both.
        assert largest_difference(each.delta, change) < 1e-9
        assert any(bool(one.any()) for one in each.delta.values())


def test_padding_and_the_other_texts_of_a_batch_change_nothing():
    network = SMALL.build(TEXTS).double().eval()
    text = torch.tensor([[3, 9, 4, 0, 0, 0, 0]])
    short = network(text[:, :3])
    together = network(torch.cat((text, torch.ones_like(text), torch.zeros_like(text))))
    torch.testing.assert_close(together[:1], short, atol=1e-12, rtol=0)
    assert bool(together.isfinite().all())  # a text without a word, too


@pytest.mark.parametrize(
    "settings",
    [{"width": 6}, {"rank": 300}, {"rank": 4, "adapted": ()}],
)
def test_refuses_settings_that_build_no_network(settings):
    with pytest.raises(ValueError, match="must"):
        Transformer(**settings)


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
