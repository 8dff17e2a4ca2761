"""The grouping of federations into stacks that train at once."""

from collections.abc import Mapping, Sequence

from overheard.core.defense import Defense
from overheard.federation.federation import Federation
from overheard.federation.sampling import participants_per_round


def check_stackable(federations: Sequence[Federation]) -> None:
    """Refuse federations that cannot train in one stack.

    They may differ in data, seed, participation and failures, and in defenses that do not
    change model or recipe. Federations with equal `model` texts must build the same model.
    """
    expected = _shared_settings(federations[0]) if federations else {}
    for index, federation in enumerate(federations):
        settings = _shared_settings(federation)
        differing = [name for name, value in settings.items() if value != expected[name]]
        if differing:
            raise ValueError(
                f"federation {index} differs from federation 0 in {', '.join(differing)}, so "
                "they cannot train at once; run it separately"
            )


def split_into_stacks(federations: Sequence[Federation], clients: int) -> tuple[range, ...]:
    """Split federations, in order, into stacks of at most `clients` clients per round.

    A federation with more clients is its own stack. The last bits of trained weights depend on
    the stack, so stacks depend only on the federations and their order.
    """
    cuts, total = [0], 0
    for index, federation in enumerate(federations):
        count = participants_per_round(len(federation.clients), federation.participation)
        if total and total + count > clients:
            cuts.append(index)
            total = 0
        total += count
    return tuple(map(range, cuts, [*cuts[1:], len(federations)]))


def _shared_settings(federation: Federation) -> Mapping[str, object]:
    """Return the settings that must be equal for federations to train in one stack."""
    return {
        "model": federation.model,
        "task": federation.task,
        "recipe": federation.recipe,
        "rounds": federation.rounds,
        "engine": federation.engine,
        "workers": federation.workers,
        "device": federation.device,
        "protocol": federation.protocol,
        "defenses of the training": tuple(
            defense
            for defense in federation.defenses
            if type(defense).on_training is not Defense.on_training
        ),
    }
