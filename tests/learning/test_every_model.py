"""Every architecture: its size, its last layer, and the inputs that it refuses."""

from functools import partial

import pytest
import torch
from torch import nn

from overheard.core.errors import PlanError
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.learning.initialization import initial_weights
from overheard.learning.last_layer import find_last_layer
from overheard.learning.models.alexnet import AlexNet
from overheard.learning.models.conv_net import ConvNet
from overheard.learning.models.decaf_conv2 import DecafConv2
from overheard.learning.models.decaf_modules import DecafModules
from overheard.learning.models.ldia_conv import LdiaConv
from overheard.learning.models.logistic import Logistic
from overheard.learning.models.lstm import Lstm
from overheard.learning.models.mlp import Mlp
from overheard.learning.models.mobilenet import MobileNet
from overheard.learning.models.resnet18 import ResNet18
from overheard.learning.models.shift_census import ShiftCensus
from overheard.learning.models.shift_conv import ShiftConv
from overheard.learning.models.text_bag import TextBag
from overheard.learning.models.tiny_resnet import TinyResnet
from overheard.learning.models.vgg16 import Vgg16
from overheard.plans.registries import MODELS as KNOWN
from overheard.testing.model import check_model

TEN = tuple("0123456789")
DIGITS = Task((1, 28, 28), TEN)
CENSUS = Task((14,), ("<=50K", ">50K"))
TEXTS = Task((40,), TEN[:4], vocabulary=20_000)
WINDOWS = Task((10,), tuple(str(word) for word in range(5000)), vocabulary=5000)
REVIEWS = Task((40,), TEN[1:6], vocabulary=1000)
COLOURS = Task((3, 32, 32), TEN)
FACES = Task((1, 48, 48), TEN[:7])

MODELS = [name for name in KNOWN.plugins() if name not in ("own", "unknown")]
"""All architectures but custom and unknown ones."""


@pytest.mark.parametrize(
    ("model", "task", "parameters"),
    [
        # 28 x 28 pixels: (1 x 9 + 1) 10 + (10 x 9 + 1) 20 + (20 x 12 x 12 + 1) 50 + 51 x 10
        (DecafConv2(), DIGITS, 146_480),
        # (25 + 1) 32 + (32 x 25 + 1) 32 + (32 x 4 x 4 + 1) 10
        (LdiaConv(), DIGITS, 31_594),
        # On 14 x 14 pixels one pixel is left, and no second pool: ... + (32 + 1) 10
        (LdiaConv(), Task((1, 14, 14), TEN), 26_794),
        # (9 + 1) 32 + (32 x 9 + 1) 64 + (64 x 12 x 12 + 1) 128 + 129 x 10
        (ShiftConv(), DIGITS, 1_199_882),
        # 15 x 64 + 65 x 32 + 33 x 16 + 17 x 8 + 9 x 2
        (ShiftCensus(), CENSUS, 3_722),
        (Mlp(hidden=(64, 32, 16, 8)), CENSUS, 3_722),
        # 15 x 2
        (Logistic(), CENSUS, 30),
        # 20,000 x 64 + 65 x 64 + 65 x 4
        (TextBag(), TEXTS, 1_284_420),
        # (27 + 1) 16 + (144 + 1) 32 + (288 + 1) 64 + (64 x 4 x 4 + 1) 50 + 51 x 10
        (DecafModules(), COLOURS, 75_344),
        # 5,000 x 100 + 4 x 64 (100 + 64 + 2) + 65 x 5,000
        (Lstm(), WINDOWS, 867_496),
        # 3 blocks of (9 c + 1) 128 + 2 x 128 with c = 3, 128, 128, then (128 x 4 x 4 + 1) 10
        (ConvNet(), COLOURS, 320_010),
        # (75 + 1) 128 + (25 x 128 + 1) 192 + (9 x 192 + 1) 256 + (9 x 256 + 1) 192
        # + (9 x 192 + 1) 192 + (192 x 4 x 4 + 1) 10
        (AlexNet(), COLOURS, 1_872_202),
        # (9 + 1) 64 + 2 (9 x 64 + 1) 64 + (64 x 4 x 4 + 1) 10
        (TinyResnet(), DIGITS, 84_746),
        # 1,000 x 50 + 4 x 128 (50 + 128 + 2) + 129 x 5
        (Lstm(dim=50, hidden=128), REVIEWS, 142_805),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_has_the_number_of_parameters_counted_by_hand(model, task, parameters):
    weights = initial_weights(partial(model.build, task), Seed(0))
    assert sum(weight.numel() for weight in weights.values()) == parameters


@pytest.mark.parametrize(
    ("model", "task", "last"),
    [
        (ResNet18(), COLOURS, 512),
        (ResNet18(), FACES, 512),
        (ResNet18(), DIGITS, 512),
        (Vgg16(), COLOURS, 4096),
        (Vgg16(), FACES, 4096),
        (DecafModules(modules=4), FACES, 50),
        (DecafConv2(hidden=20), FACES, 20),
        (MobileNet(alpha=0.5), COLOURS, 512),
        (MobileNet(alpha=0.25), DIGITS, 256),
        (MobileNet(alpha=0.25), Task((3, 224, 224), TEN), 256),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_returns_logits_and_has_a_last_layer_of_the_expected_width(model, task, last):
    network = model.build(task)
    with torch.no_grad():
        assert network(torch.zeros(2, *task.shape)).shape == (2, task.classes)
    weight = dict(network.named_parameters())[find_last_layer(network).weight]
    assert weight.shape == (task.classes, last)


@pytest.mark.parametrize("name", MODELS)
def test_refuses_unsupported_inputs_and_names_a_model_that_supports_them(name):
    wrong = CENSUS if name in ("text_bag", "lstm", "transformer") else TEXTS
    with pytest.raises(PlanError, match=r"model: \w+ takes .*; choose"):
        KNOWN.plugins()[name]().build(wrong)


@pytest.mark.parametrize(
    "model", [DecafConv2(), DecafModules(), ShiftConv(), Vgg16(), MobileNet()]
)
def test_refuses_images_too_small_for_its_pools(model):
    with pytest.raises(PlanError, match=r"pixels or more.*choose a shallower"):
        model.build(Task((1, 4, 4), TEN))


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_every_model(name):
    check_model(KNOWN.plugins()[name]())


def test_relu_after_the_pool_gives_the_bits_of_relu_before_it():
    network = DecafConv2().build(DIGITS)
    first, bend, second, pool, _, *rest = network
    before = nn.Sequential(first, bend, second, nn.ReLU(), pool, *rest)
    images = torch.randn(3, 1, 28, 28, generator=Seed(0).generator())
    assert torch.equal(network(images), before(images))
