from dataclasses import replace
from typing import Any

import pytest
import torch

from overheard.core.defense import Defense
from overheard.core.examples import Examples
from overheard.core.parties import client, shadow_device
from overheard.federation.federation import Federation

NOBODY = Examples(torch.zeros(0, 1), torch.zeros(0, dtype=torch.int64))
OF_CLASS_2 = Examples(torch.zeros(4, 1), torch.tensor([0, 1, 1, 2]))
BELOW_0 = Examples(torch.zeros(4, 1), torch.tensor([0, 1, 1, -1]))

WIDE = Examples(torch.zeros(4, 2), torch.tensor([0, 1, 1, 0]))
TEXTS = Examples(torch.zeros(4, 1, dtype=torch.int64), torch.tensor([0, 1, 1, 0]))


class Still(Defense):
    name = "still"
    source = "this test"
    enforced_at = "client"
    switched_off_by = "the client"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"rounds": 0}, "rounds must be 1 or more"),
        ({"rounds": 3}, "3 rounds and rows for 2"),
        ({"rows": [[torch.tensor([0])], []]}, r"the same clients, one or more, got \[0, 1\]"),
        ({"rows": [[], []]}, r"one or more, got \[0\]"),
        (
            {"rows": [[torch.tensor([0])], [torch.tensor([4])]]},
            "round 1 refers to rows",
        ),
        (
            {"rows": [[torch.tensor([-1])], [torch.tensor([0])]]},
            "round 0 refers to rows",
        ),
        ({"participation": 0.0}, "participation"),
        ({"participation": 1.1}, "participation"),
        ({"failure_rate": 1.0}, "failure_rate"),
        ({"failure_rate": float("nan")}, "failure_rate"),
        ({"test": NOBODY}, "an example or more"),
        ({"pool": OF_CLASS_2}, "between 0 and 1, got 0 to 2"),
        ({"test": BELOW_0}, "between 0 and 1, got -1 to 1"),
        ({"defenses": (Still(), Still())}, "each defense may occur once"),
        ({"background": OF_CLASS_2}, "between 0 and 1, got 0 to 2"),
        ({"background": WIDE}, r"like the pool's, \(1,\) of torch.float32, got \(2,\)"),
        ({"background": TEXTS}, r"torch.float32, got \(1,\) of torch.int64"),
        ({"shadows": -1}, "leave a client that is no shadow device, got -1"),
        ({"shadows": 2}, "leave a client that is no shadow device, got 2"),
    ],
)
def test_refuses_an_invalid_federation(
    small: Federation, changes: dict[str, Any], why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        replace(small, **changes)


class AtTheServer(Still):
    name = "at the server"
    enforced_at = "server"


def test_shadow_devices_skip_defenses_of_clients_unless_they_are_defended(
    small: Federation,
) -> None:
    defended = (Still(), AtTheServer())
    plain = replace(small, shadows=1, defenses=defended)
    assert plain.defenses_of(client(0)) == defended
    assert plain.defenses_of(shadow_device(0)) == defended[1:]
    adaptive = replace(plain, are_shadows_defended=True)
    assert adaptive.defenses_of(shadow_device(0)) == adaptive.defenses_of(client(0)) == defended
