"""Audits of Gaussian mechanisms whose claims are true or false."""

from dataclasses import replace

import torch

from overheard.core.accounting.accountant import account_mechanism
from overheard.core.defense import DefenseContext, RunParameters
from overheard.core.mechanism import Mechanism
from overheard.core.messages import Update
from overheard.core.parties import SERVER, Party, client
from overheard.core.seeds import Seed
from overheard.defenses.local_dp import LocalDp
from overheard.findings.audit import Audit
from overheard.findings.finding import ArmDefense, ArmRun, Cell, ClaimRow, Finding, Refusal

LOCAL = LocalDp(clip=1.0, noise_multiplier=1.0).mechanism()
ONE_ROUND = RunParameters(1, 1.0)


def noisy_finding(
    noise_multiplier: float,
    *,
    members: int = 500,
    outsiders: int = 2000,
    observers: tuple[Party, ...] = (SERVER,),
    attack: str = "peek",
) -> Finding:
    """Return a finding on records that each give one clipped update: 1 for members, else -1.

    The claim is the update after `local_dp`: two neighbours at the largest possible distance.
    """
    true = (*(1.0,) * members, *(-1.0,) * outsiders)
    defense = LocalDp(clip=1.0, noise_multiplier=noise_multiplier)
    said = tuple(
        float(
            defense.on_update(
                Update({"a": torch.tensor([sign])}),
                DefenseContext(0, client(place), Seed(place)),
            ).delta["a"]
        )
        for place, sign in enumerate(true)
    )
    cell = Cell("noisy", 0, observers, attack, "Peek()", "membership", (0,))
    return Finding(cell, (client(0),), ClaimRow(said), ClaimRow(true))


def audit_of(
    mechanism: Mechanism,
    *findings: Finding,
    refusals: tuple[Refusal, ...] = (),
    are_alike: bool = True,
    settings: str = "LocalDp(clip=1.0)",
    run: RunParameters = ONE_ROUND,
    are_canaries: bool = False,
    are_coins_fair: bool = False,
) -> Audit:
    """Return an audit of an arm with this mechanism and one without.

    Canaries were inserted with the odds at which the findings have members, or by fair coins.
    """
    record = ArmDefense(
        settings, "client", "each client", "epsilon", account_mechanism(mechanism, run)
    )
    noisy = ArmRun("noisy", 0, (record,), {}, 0, 1, are_records_exchangeable=are_alike)
    if are_canaries:
        noisy = replace(
            noisy,
            canary_odds=findings[0].true_numbers.count(1) / findings[0].true_numbers.count(-1),
        )
    if are_coins_fair:
        offered = (client(0),) * len(findings[0].true_numbers)
        noisy = replace(noisy, canary_odds=1.0, canary_clients=offered)
    bare = replace(noisy, arm="none", defenses=())
    return Audit("Noise", "Made up", ("a",), (bare, noisy), findings, refusals, "", {})
