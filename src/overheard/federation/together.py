"""Which federations can train side by side, and in what company."""

from collections.abc import Mapping, Sequence

from overheard.core.defense import Defense
from overheard.federation.cohort import asked
from overheard.federation.federation import Federation


def check_together(federations: Sequence[Federation]) -> None:
    """Refuse federations that cannot train side by side.

    They may differ in data, seed, participation and failures, and in defenses that leave model
    and recipe alone. Two whose `model` reads alike are taken to build the same one.
    """
    wanted = _shared(federations[0]) if federations else {}
    for place, one in enumerate(federations):
        differing = [name for name, what in _shared(one).items() if what != wanted[name]]
        if differing:
            raise ValueError(
                f"federation {place} differs from federation 0 in {', '.join(differing)}, and "
                "cannot train beside it: run it apart"
            )


def stacks(federations: Sequence[Federation], clients: int) -> tuple[range, ...]:
    """Cut a row of federations into stretches with at most so many clients a round together.

    A federation with more of them than that is a stretch of its own. Who shares a stack moves
    the last bits of what is learned, so it hangs on the federations and their order alone.
    """
    cuts, total = [0], 0
    for place, one in enumerate(federations):
        count = asked(len(one.clients), one.participation)
        if total and total + count > clients:
            cuts.append(place)
            total = 0
        total += count
    return tuple(map(range, cuts, [*cuts[1:], len(federations)]))


def _shared(federation: Federation) -> Mapping[str, object]:
    """What clients of different federations must have in common to be trained together."""
    return {
        "model": federation.model,
        "task": federation.task,
        "recipe": federation.recipe,
        "rounds": federation.rounds,
        "engine": federation.engine,
        "workers": federation.workers,
        "device": federation.device,
        "protocol": federation.distillation,
        "defenses of the training": tuple(
            defense
            for defense in federation.defenses
            if type(defense).on_training is not Defense.on_training
        ),
    }
