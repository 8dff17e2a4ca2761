"""Three candidate users and a holdout user, in a small run of two rounds."""

from collections.abc import Mapping

import torch

from overheard.core.compute_settings import ComputeSettings, TensorCache
from overheard.core.defense import Defense
from overheard.core.examples import Examples
from overheard.core.facts import Facts
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.known_users import KnownUsers
from overheard.core.messages import Broadcast, Message, Update
from overheard.core.parties import SERVER, Party, shadow_device
from overheard.core.view import View
from tests.simulation.small_run import CLASSES, RECIPE, CountingCache, blobs, broadcast, build

SIZES = {"ann": 12, "ben": 9, "cid": 1, "dot": 8}

DEVICES = {
    shadow_device(0): "ann",
    shadow_device(1): "ben",
    shadow_device(2): "cid",
    shadow_device(3): "dot",
}


def priors() -> dict[str, Examples]:
    """Draw each user's examples, in random order of labels."""
    return {
        user: blobs(4, seed).take(torch.arange(size))
        for seed, (user, size) in enumerate(SIZES.items())
    }


def make_known_users(devices: Mapping[Party, str] = DEVICES) -> KnownUsers:
    examples = priors()
    return KnownUsers(
        {n: examples[n] for n in ("ann", "ben", "cid")}, {"dot": examples["dot"]}, devices
    )


def make_knowledge(
    *,
    shelf: TensorCache | None = None,
    workers: int = 1,
    known: KnownUsers | None = None,
    defenses: tuple[Defense, ...] | None = None,
    background: Examples | None = None,
) -> Knowledge:
    return Knowledge(
        CLASSES,
        build,
        recipe=RECIPE,
        defenses=defenses,
        compute=ComputeSettings(cache=shelf or CountingCache(), workers=workers),
        facts=Facts(known or make_known_users()),
        background=background,
    )


def make_update_message(number: int, sender: Party, height: float = 0.0) -> Message:
    """Make an update with this value everywhere."""
    delta = {name: torch.full_like(w, height) for name, w in broadcast(number).items()}
    return Message(number, sender, frozenset({SERVER}), Update(delta, 5))


def make_view(
    rounds: int = 2, devices: tuple[Party, ...] = tuple(DEVICES), clients: int = 2
) -> View:
    """Make a view: updates of clients are 1, 2, ... everywhere, of devices -1, -2, ..."""
    messages = []
    for number in range(rounds):
        messages.append(Message(number, SERVER, frozenset(), Broadcast(broadcast(number))))
        messages += [
            make_update_message(number, Party(f"anon/{number}-{n}"), n + 1)
            for n in range(clients)
        ]
        messages += [
            make_update_message(number, device, -1 - int(device[-1])) for device in devices
        ]
    return View(frozenset({SERVER}), tuple(messages))
