"""Manifests of the transcripts of simulated runs."""

from collections.abc import Sequence

from overheard.archive.manifest import DefenseRecord, Manifest
from overheard.core.defense import Defense
from overheard.core.parties import SERVER
from overheard.federation.digest import data_digests
from overheard.federation.federation import Federation


def build_manifests(federations: Sequence[Federation]) -> tuple[Manifest, ...]:
    """Build the manifest of each run."""
    return tuple(map(build_manifest, federations, data_digests(federations)))


def build_manifest(federation: Federation, data: str) -> Manifest:
    """Build the manifest of a run on data with this digest."""
    return Manifest(
        task=federation.task,
        model=federation.model,
        recipe=federation.recipe,
        defenses=tuple(record_defense(defense) for defense in federation.defenses),
        parties=(SERVER, *federation.clients),
        rounds=federation.rounds,
        participation=federation.participation,
        failure_rate=federation.failure_rate,
        are_shadows_defended=federation.are_shadows_defended,
        protocol=federation.protocol,
        seed=federation.seed.value,
        data=data,
    )


def record_defense(defense: Defense) -> DefenseRecord:
    """Return the manifest entry of a defense."""
    return DefenseRecord(
        defense.name,
        repr(defense),
        defense.enforced_at,
        defense.switched_off_by,
        defense.mechanism(),
    )
