"""Short apps, each with a fault of one rule, and the same without it.

They are re-written from the public cases that the rules name: nothing is copied. In a faulty
app, the line of the fault ends with `# fault`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

Files = Mapping[str, str]


@dataclass(frozen=True)
class Pair:
    """The files of an app with a fault, and of one without."""

    bad: Files
    good: Files


OPACUS = """
import torch
from flwr.app import Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from opacus import PrivacyEngine
from torch.utils.data import DataLoader
from model import Net

app = ClientApp()
{before}

@app.train()
def answer(msg, context):
    {start}
    net = Net()
    loader = DataLoader(load("train"), batch_size=32, shuffle=True)
    net, optimizer, loader = engine_of(context).make_private(
        module=net,
        optimizer=torch.optim.SGD(net.parameters(), lr=0.1),
        data_loader=loader,
        noise_multiplier={noise},
        max_grad_norm=1.0,
        {sampling}
    )
    for x, y in loader:
        optimizer.zero_grad()
        loss = net(x, y)
        loss.backward()
        optimizer.step()
    {end}
    return Message(content=RecordDict({{"metrics": MetricRecord({{{sent}}})}}), reply_to=msg)

ENGINES = {{}}

def engine_of(context):
    if context.node_id not in ENGINES:
        ENGINES[context.node_id] = PrivacyEngine(secure_mode=True)
    return ENGINES[context.node_id]
"""
NET = """
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = {norm}
"""


def opacus(
    before: str = "",
    start: str = "",
    noise: str = "1.0",
    sampling: str = "",
    end: str = "",
    sent: str = "",
    norm: str = "nn.GroupNorm(2, 8)",
) -> Files:
    """Return a client of Flower that trains by Opacus."""
    client = OPACUS.format(
        before=before, start=start, noise=noise, sampling=sampling, end=end, sent=sent
    )
    return {"client.py": client, "model.py": NET.format(norm=norm)}


def insecure(files: Files) -> Files:
    """Return an app whose engine draws from the generator of PyTorch."""
    plain = files["client.py"].replace("PrivacyEngine(secure_mode=True)", "PrivacyEngine()")
    return {**files, "client.py": plain}


def fresh(end: str, sent: str) -> Files:
    """Return an app that makes an engine in each message."""
    files = opacus(start="engine = PrivacyEngine(secure_mode=True)", end=end, sent=sent)
    return {
        **files,
        "client.py": files["client.py"].replace("engine_of(context).make", "engine.make"),
    }


SCRIPT = """
import nvflare.client as flare
import torch
from opacus import PrivacyEngine

def main(net, optimizer, loader):
    flare.init()
    engine = None
    while flare.is_running():
        received = flare.receive()
        if {condition}:
            engine = PrivacyEngine(secure_mode=True)
            net, optimizer, loader = engine.make_private(
                module=net, optimizer=optimizer, data_loader=loader, noise_multiplier=1.0
            )
        for x, y in loader:
            net(x, y).backward()
            optimizer.step()
        flare.send(flare.FLModel(params=net.state_dict(), metrics={{}}))
"""
OWN = """
import torch
from torch.utils.data import DataLoader

def train_with_dp(net, data, clip, sigma, optimizer):
    {loader}
    for x, y in loader:
        optimizer.zero_grad()
        {step}
        for p in net.parameters():
            p.grad.add_(sigma * clip * torch.randn_like(p))
        {after}
        optimizer.step()
"""
PER_EXAMPLE = """total = [torch.zeros_like(p) for p in net.parameters()]
        for one, label in zip(x, y):
            net.zero_grad()
            net(one, label).backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), clip)
            for s, p in zip(total, net.parameters()):
                s.add_(p.grad)
        for s, p in zip(total, net.parameters()):
            p.grad = s"""
PER_BATCH = """net(x, y).backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), clip)"""
LOADER = "loader = DataLoader(data, batch_size=32)"
POISSON = "loader = DataLoader(data, batch_sampler=PoissonSampler(len(data), 0.01))"


def own(step: str, after: str = "", loader: str = LOADER) -> Files:
    """Return an app that clips and adds noise by itself."""
    return {"train.py": OWN.format(step=step, after=after, loader=loader)}


ACCUMULATED = {
    "train.py": """
import torch

def train_privately(net, loader, clip, sigma, optimizer):
    for i, (x, y) in enumerate(loader):
        net(x, y).backward()
        if (i + 1) % 4 == 0:
            torch.nn.utils.clip_grad_norm_(net.parameters(), clip)  # fault
            for p in net.parameters():
                p.grad.add_(sigma * clip * torch.randn_like(p))
            optimizer.step()
            optimizer.zero_grad()
"""
}
SERVER_NOISE = """
import numpy as np

class PrivateServer:
    def aggregate_weights(self, old, weights, clip, sigma):
        summed = []
        for before, weight in zip(old, weights):
            {clip}
            summed.append({kept} + np.random.normal(0, sigma * clip, before.shape))
        return summed
"""
ORDER = """
import numpy as np

def privatize(update, clip, sigma):
    {first}
    {second}
    return update
"""
NOISE = "update = update + np.random.normal(0, sigma * clip, update.shape)"
CLIP = "update = np.clip(update, -clip, clip)"
WRAPPED = """
from flwr.client import NumPyClient
from flwr.server.strategy import DifferentialPrivacyServerSideFixedClipping, FedAvg
from flwr_datasets.partitioner import {partitioner}

class Client(NumPyClient):
    def fit(self, parameters, config):
        return parameters, {count}, {{}}

def server(context):
    parts = {partitioner}(num_partitions=10)
    strategy = FedAvg({settings})
    return DifferentialPrivacyServerSideFixedClipping(  # fault
        strategy,
        noise_multiplier=0.5,
        clipping_norm=1.0,
        num_sampled_clients=context.run_config["sampled"],
    )
"""
CONFIG = """
[tool.flwr.app.config]
sampled = {sampled}
[tool.flwr.federations.local]
options.num-supernodes = {nodes}
"""


def wrapped(
    count: str = "len(self.data)",
    partitioner: str = "IidPartitioner",
    settings: str = "fraction_fit=0.5, min_fit_clients=2",
    sampled: int = 10,
    nodes: int = 20,
) -> Files:
    """Return an app whose server adds noise by a wrapper of Flower."""
    return {
        "app.py": WRAPPED.format(count=count, partitioner=partitioner, settings=settings),
        "pyproject.toml": CONFIG.format(sampled=sampled, nodes=nodes),
    }


def local(arguments: str) -> Files:
    """Return an app whose clients add noise by `LocalDpMod`."""
    return {
        "client.py": (
            "from flwr.clientapp import ClientApp\n"
            "from flwr.clientapp.mod import LocalDpMod\n"
            "CLIP = 2.0\n"
            f"app = ClientApp(mods=[LocalDpMod({arguments})])  # fault\n"
        )
    }


PAIRS: Mapping[str, Pair] = {
    "accountant-per-round": Pair(
        fresh("epsilon = engine.get_epsilon(1e-5)\n    print(epsilon)", ""),
        opacus(end="print(engine_of(context).get_epsilon(1e-5))"),
    ),
    "epsilon-of-one-round": Pair(
        fresh("epsilon = engine.get_epsilon(1e-5)", '"epsilon": epsilon'),
        opacus(end="epsilon = engine_of(context).get_epsilon(1e-5)", sent='"epsilon": epsilon'),
    ),
    "insecure-generator": Pair(insecure(opacus()), opacus()),
    "training-metrics-in-clear": Pair(
        opacus(end="total = 0.0 + loss.item()", sent='"train_loss": total'),
        opacus(end="total = 0.0 + loss.item()\n    print(total)", sent='"lr": 0.1'),
    ),
    "held-out-metrics-in-clear": Pair(
        opacus(
            end='test = DataLoader(load("test"))\n    score = sum(net(x, y) for x, y in test)',
            sent='"accuracy": score',
        ),
        opacus(end='score = sum(net(x, y) for x, y in DataLoader(load("test")))'),
    ),
    "labels-in-clear": Pair(
        opacus(end="counts = torch.bincount(y)", sent='"counts": counts.tolist()'),
        opacus(end="counts = torch.bincount(y)\n    print(counts)"),
    ),
    "counts-in-clear": Pair(
        opacus(sent='"num-examples": len(loader.dataset)'), opacus(sent='"num-examples": 1')
    ),
    "batch-norm": Pair(opacus(norm="nn.BatchNorm2d(8)"), opacus()),
    "no-noise-or-clip": Pair(opacus(noise="0.0"), opacus()),
    "noise-repeats": Pair(
        insecure(opacus(start="torch.manual_seed(42)")), opacus(start="torch.manual_seed(42)")
    ),
    "noise-seed-known": Pair(
        insecure(opacus(start='torch.manual_seed(msg.content["config"]["seed"])')),
        insecure(opacus(start='rate = msg.content["config"]["rate"]')),
    ),
    "shuffled-as-poisson": Pair(
        opacus(
            sampling="poisson_sampling=False,",
            end="print(engine_of(context).get_epsilon(1e-5))",
        ),
        opacus(
            sampling="poisson_sampling=True,",
            end="print(engine_of(context).get_epsilon(1e-5))",
        ),
    ),
    "joins-without-privacy": Pair(
        {"client.py": SCRIPT.format(condition="received.current_round == 0")},
        {"client.py": SCRIPT.format(condition="engine is None")},
    ),
    "batch-gradient-clipped": Pair(own(PER_BATCH), own(PER_EXAMPLE)),
    "accumulated-then-clipped": Pair(ACCUMULATED, own(PER_EXAMPLE)),
    "divided-by-realised-size": Pair(
        own(PER_EXAMPLE, "p.grad.div_(len(x))", POISSON),
        own(PER_EXAMPLE, "p.grad.div_(32)", POISSON),
    ),
    "weights-clipped": Pair(
        {
            "server.py": SERVER_NOISE.format(
                clip="weight = np.clip(weight, -1, 1)", kept="weight"
            )
        },
        {
            "server.py": SERVER_NOISE.format(
                clip="change = np.clip(weight - before, -clip, clip)", kept="before + change"
            )
        },
    ),
    "noise-before-clipping": Pair(
        {"client.py": ORDER.format(first=NOISE, second=CLIP)},
        {"client.py": ORDER.format(first=CLIP, second=NOISE)},
    ),
    "weights-by-counts": Pair(wrapped(partitioner="DirichletPartitioner"), wrapped()),
    "cohort-too-small": Pair(wrapped(nodes=10), wrapped()),
    "sensitivity-below-clip": Pair(
        local("CLIP, sensitivity=1.0, epsilon=0.5, delta=1e-5"),
        local("CLIP, sensitivity=CLIP, epsilon=0.5, delta=1e-5"),
    ),
    "classical-gaussian": Pair(local("CLIP, CLIP, 10.0, 1e-5"), local("CLIP, CLIP, 1.0, 1e-5")),
}

KEPT_CLIENT = """
import flwr as fl
import torch
from flwr.client import NumPyClient
from flwr.clientapp import ClientApp
from opacus import PrivacyEngine

class Client(NumPyClient):
    def __init__(self, net):
        self.engine = PrivacyEngine()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        self.net, self.optimizer, self.loader = self.engine.make_private(
            module=net, optimizer=optimizer, data_loader=train_data, noise_multiplier=0.4
        )

    def fit(self, parameters, config):
        for x, y in self.loader:
            self.net(x, y).backward()
            self.optimizer.step()
        epsilon = self.engine.get_epsilon(delta=1e-5)
        return self.get_parameters({}), len(self.loader), {"epsilon": epsilon}

    def evaluate(self, parameters, config):
        return test(self.net, test_data), len(test_data), {}

def client_fn(context):
    return Client(Net()).to_client()

app = ClientApp(client_fn=client_fn)
if __name__ == "__main__":
    fl.client.start_client(server_address="127.0.0.1:8080", client=Client(Net()).to_client())
"""
INSTANCE_LEVEL = """
import flwr as fl
import torch
from fl4health.clients.instance_level_dp_client import InstanceLevelDpClient

class Client(InstanceLevelDpClient):
    def get_model(self, config):
        return torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8))

    def get_optimizer(self, config):
        return torch.optim.SGD(self.model.parameters(), lr=0.001)

if __name__ == "__main__":
    fl.client.start_client(server_address="0.0.0.0:8080", client=Client("data").to_client())
"""
RECIPE = """
import nvflare.client as flare
from nvflare.client.tracking import SummaryWriter
from opacus import PrivacyEngine
from torch.utils.data import DataLoader

def main(net, optimizer, data, epochs):
    loader, test = DataLoader(data, shuffle=True), DataLoader("test")
    flare.init()
    writer = SummaryWriter()
    engine = None
    while flare.is_running():
        received = flare.receive()
        if received.current_round == 0:
            engine = PrivacyEngine()
            net, optimizer, loader = engine.make_private_with_epsilon(
                module=net,
                optimizer=optimizer,
                data_loader=loader,
                epochs=epochs * received.total_rounds,
                target_epsilon=1.0,
                target_delta=1e-5,
                max_grad_norm=1.0,
            )
        for x, y in loader:
            loss = net(x, y)
            loss.backward()
            optimizer.step()
        epsilon = engine.get_epsilon(1e-5)
        writer.add_scalar(tag="epsilon", scalar=epsilon, global_step=received.current_round)
        score = sum(net(x, y) for x, y in test)
        flare.send(flare.FLModel(params=net.state_dict(), metrics={"accuracy": score}))
"""
JAX_CLIENT = """
import os
import dp_accounting
import jax
import jax_privacy
from flwr.app import Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from jax_privacy import batch_selection, noise_addition

app = ClientApp()
SEED = int.from_bytes(os.urandom(4), "big")

@app.train()
def answer(msg, context):
    gradient = jax_privacy.clipped_grad(loss, l2_clip_norm=1.0, batch_argnums=(1, 2))
    privatizer = noise_addition.gaussian_privatizer(stddev=1.2, prng_key=jax.random.key(SEED))
    for rows in batch_selection.CyclicPoissonSampling(sampling_prob=0.01).batch_iterator(1000):
        clipped = gradient(parameters, features[rows], labels[rows])
        mean = jax.tree.map(lambda one: one / 10, clipped)
        noisy, state = privatizer.update(mean, state)
    return Message(content=RecordDict({"metrics": MetricRecord({"num-examples": 1})}))

def spent(rounds):
    event = dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(1.2))
    return dp_accounting.SelfComposedDpEvent(event, rounds * 100)
"""

EXAMPLES_OF_A_BATCH = """
import torch

def clipped_sum(model, xb, yb, bound):
    total = [torch.zeros_like(p) for p in model.parameters()]
    for x, y in zip(xb, yb):
        model.zero_grad()
        torch.nn.functional.cross_entropy(model(x[None]), y[None]).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), bound)
        for held, p in zip(total, model.parameters()):
            held += p.grad
    return total

def train(model, loader, optimizer, max_grad_norm, noise_multiplier):
    for xb, yb in loader:
        total = clipped_sum(model, xb, yb, max_grad_norm)
        for held, p in zip(total, model.parameters()):
            noise = torch.normal(0.0, noise_multiplier * max_grad_norm, held.shape)
            p.grad = (held + noise) / 16
        optimizer.step()
"""

GOOD: Mapping[str, Files] = {
    "each example of a batch in a function of its own": {"client.py": EXAMPLES_OF_A_BATCH},
    "Flower, e2e-opacus": {"client.py": KEPT_CLIENT},
    "FL4Health, instance level": {"client.py": INSTANCE_LEVEL},
    "Flower, wrapper with equal counts": wrapped(count="1"),
    "Flower, LocalDpMod": local("CLIP, CLIP, 1.0, 1e-5"),
    "NVFlare, hello-dp without its metrics of training records": {"client.py": RECIPE},
    "JAX Privacy": {"client.py": JAX_CLIENT},
}
"""The apps, fixed beforehand, on which no rule may be critical."""
