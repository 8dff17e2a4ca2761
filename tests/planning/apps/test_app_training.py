"""How clients train is read from the syntax of an app, which is never run."""

import ast

import pytest

from overheard.planning.apps.app_training import AppTraining, read_app_training
from overheard.planning.apps.source_files import SourceFile

LOOP = """
    for _ in range({epochs}):
        for x, y in loader:
            loss(net(x), y).backward()
            steps.step()
"""


def read(**files: str) -> AppTraining:
    """Read an app of modules `app.NAME`."""
    return read_app_training(
        [
            SourceFile(f"app.{name}", f"app/{name}.py", ast.parse(text))
            for name, text in files.items()
        ]
    )


def values(training: AppTraining) -> dict[str, object]:
    return {one.key: one.value for one in training.settings}


@pytest.mark.parametrize(
    ("imported", "call", "expected"),
    [
        ("import torch", "torch.optim.SGD(p, lr=0.5)", ("sgd", 0.5, 0.0, 0.0)),
        ("from torch import optim", "optim.Adam(p)", ("adam", 0.001, 0.0, 0.0)),
        ("import torch.optim as o", "o.SGD(p, 0.1, 0.9)", ("sgd", 0.1, 0.9, 0.0)),
        ("from torch.optim import AdamW as A", "A(p, 3e-4)", ("adamw", 3e-4, 0.0, 0.01)),
        (
            "from torch import optim; from functools import partial",
            "partial(optim.AdamW, lr=3e-4)",
            ("adamw", 3e-4, 0.0, 0.01),
        ),
        ("import torch.optim", "torch.optim.Adadelta(p)", ("adadelta", 1.0, 0.0, 0.0)),
        (
            "from torch.optim import SGD",
            "SGD(p, lr=0.1, momentum=0.9, weight_decay=5e-4)",
            ("sgd", 0.1, 0.9, 5e-4),
        ),
    ],
)
def test_the_one_optimizer_has_its_arguments_and_the_defaults_of_torch(
    imported: str, call: str, expected: tuple[object, ...]
):
    training = read(task=f"raise SystemExit('was run')\n{imported}\nsteps = {call}\n")
    found = values(training)
    keys = ("optimizer", "rate", "momentum", "weight_decay")
    assert tuple(found[key] for key in keys) == expected
    assert not training.beyond
    assert training.settings[0].source == "app/task.py, line 3"


def test_of_several_optimizers_none_is_taken():
    code = "from torch import optim\na = optim.SGD(p)\nb = optim.Adam(q)\n"
    training = read(task=code)
    assert not training.settings
    assert training.optimizers == ("SGD in app/task.py, line 2", "Adam in app/task.py, line 3")
    same = read(task="from torch import optim\na = optim.Adam(p)\nb = optim.Adam(q)\n")
    assert values(same)["optimizer"] == "adam"


@pytest.mark.parametrize(
    ("call", "what"),
    [
        ("optim.RMSprop(p)", "the optimizer RMSprop"),
        ("optim.SGD(p, momentum=0.9, nesterov=True)", "nesterov of SGD"),
        ("optim.Adam(p, betas=(0.5, 0.9))", "betas of Adam"),
        ("optim.Adam(p, betas=mine)", "betas of Adam"),
        ("optim.Adam(p, **settings)", "arguments of Adam that are not written out"),
        ("optim.Adam([{'params': p}, {'params': q, 'lr': 1}])", "groups of parameters of Adam"),
        (
            "optim.lr_scheduler.StepLR(s, 1)",
            "a schedule of the learning rate (StepLR)",
        ),
        ("torch.nn.utils.clip_grad_norm_(p, 1.0)", "clipped gradients (clip_grad_norm_)"),
        ("keras.optimizers.Adam(0.01)", "the optimizer Adam of Keras"),
        ("net.compile(optimizer='adam', loss='mse')", "the optimizer adam of Keras"),
        ("engine.make_private(module=net)", "DP-SGD (make_private)"),
        (
            "torch.nn.CrossEntropyLoss(label_smoothing=mine)",
            "label smoothing by an unknown number",
        ),
    ],
)
def test_what_a_recipe_cannot_state_is_told(call: str, what: str):
    assert read(task=f"import torch\nfrom torch import optim\n{call}\n").beyond == (what,)


@pytest.mark.parametrize(
    "call",
    [
        "optim.Adam(p, betas=(0.9, 0.999), eps=1e-8)",
        "optim.SGD(p, nesterov=False)",
        "optim.Adam([p for p in net.parameters() if p.requires_grad])",
        "optim.Adam(filter(lambda p: p.requires_grad, net.parameters()))",
    ],
)
def test_defaults_that_are_written_out_change_nothing(call: str):
    assert not read(task=f"from torch import optim\n{call}\n").beyond


@pytest.mark.parametrize("change", ["group['lr'] = 0.1", "group['lr'] *= 0.9"])
def test_a_rate_that_is_changed_later_is_told(change: str):
    code = "import torch\nsteps = torch.optim.SGD(p, lr=1)\nfor group in steps.param_groups:\n"
    assert read(task=f"{code}    {change}\n").beyond == (
        "a learning rate that is changed later",
    )


def test_label_smoothing_is_a_setting():
    training = read(task="import torch\ntorch.nn.CrossEntropyLoss(label_smoothing=0.1)\n")
    assert values(training) == {"label_smoothing": 0.1}
    assert not training.beyond


def test_values_are_followed_through_names_constants_and_arguments():
    task = (
        "from torch.optim import Adam\nfrom torch.utils.data import DataLoader\n"
        "from .settings import RATE\nBATCH = 16\n"
        "def load(rows): return DataLoader(rows, BATCH, shuffle=True)\n"
        "def load_test(rows): return DataLoader(rows, 512)\n"
        "def train(net, loader, epochs, rate=0.5):\n"
        "    steps = Adam(net.parameters(), lr=rate)" + LOOP.format(epochs="epochs")
    )
    client = (
        "from app.task import train as fit\nfrom app.settings import RATE\n"
        "def run(net):\n    net.train()\n    passes = 4\n    fit(net, [], passes, rate=RATE)\n"
    )
    found = values(read(task=task, client=client, settings="RATE = 0.02\n"))
    assert (found["rate"], found["epochs"], found["batch"]) == (0.02, 4, 16)


def test_a_value_of_the_configuration_is_known_by_its_name():
    task = (
        "from torch.optim import SGD\n"
        "def train(net, loader, epochs, rate):\n"
        "    steps = SGD(net.parameters(), lr=rate)" + LOOP.format(epochs="epochs")
    )
    client = (
        "from app.task import train\n"
        "def run(message, context):\n"
        "    passes = int(context.run_config['passes'])\n"
        "    train(net, [], passes, message.content['config'].get('step', 0.1))\n"
    )
    training = read(task=task, client=client)
    assert dict(training.names) == {"rate": "step", "epochs": "passes"}
    assert "rate" not in values(training)


@pytest.mark.parametrize(
    "code",
    [
        "def train(rate):\n    SGD(p, lr=rate)\ntrain(0.1)\ntrain(0.2)\n",
        "def train(rate):\n    rate = rate / 2\n    SGD(p, lr=rate)\ntrain(0.1)\n",
        "rate = 0.1\nrate = 0.2\nSGD(p, lr=rate)\n",
        "rate = 0.1\nrate *= 0.5\nSGD(p, lr=rate)\n",
        "SGD(p, lr=0.1 / batches)\n",
        "def train(rate):\n    SGD(p, lr=rate)\ntrain(**settings)\n",
        "def f(x):\n    SGD(p, lr=x)\n    f(x)\nf(1.0)\n",
    ],
)
def test_a_value_that_is_not_clear_is_left_out(code: str):
    assert "rate" not in values(read(task=f"from torch.optim import SGD\n{code}"))


def test_the_rate_of_the_server_is_not_that_of_the_clients():
    server = (
        "def main(context):\n"
        "    rate: float = context.run_config['learning-rate']\n"
        "    FedAdam(eta=rate)\n"
    )
    assert read(server=server).server_names == {"learning-rate"}
    client = "from torch.optim import SGD\nSGD(p, lr=context.run_config['learning-rate'])\n"
    assert not read(server=server, client=client).server_names


def test_only_the_loop_around_the_batches_counts_as_epochs():
    code = "for round in range(7):\n" + LOOP.format(epochs=3)
    assert values(read(task=code))["epochs"] == 3
    assert values(read(task="if 1:" + LOOP.format(epochs="1, 5 + 1")))["epochs"] == 5
    assert not values(read(task="for x in loader:\n    loss.backward()\n"))
