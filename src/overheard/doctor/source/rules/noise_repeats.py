"""Noise from a generator with a fixed seed."""

from typing import final

from overheard.doctor.source.privacy import PrivateApp
from overheard.doctor.source.rule import CodeFault, Seen, SourceRule, UnclearCode
from overheard.doctor.source.seeds import SeededNoise, seeded_noise


@final
class NoiseRepeatsInCode(SourceRule):
    """The same seed gives the same noise, which a difference of two messages cancels."""

    name = "noise-repeats"
    severity = "critical"
    title = "noise from a generator with a fixed seed"
    mend = (
        "Seed nothing that noise is drawn from, or take the seed from `os.urandom`; fix the "
        "seed of data splits by a generator of their own."
    )
    reference = (
        "Overheard, docs/doctor.md: `torch.manual_seed` in `client_fn` or in each message"
    )

    def concerns(self, app: PrivateApp) -> bool:
        """Return whether noise is drawn by the app, or by a library that it calls."""
        return app.is_private

    def examine(self, app: PrivateApp) -> Seen:
        """Look for seeds of the generators of noise."""
        is_federated = bool(app.handlers or app.loops or app.client_functions)
        for one in seeded_noise(app):
            place = app.places(one.seeding.call)[0]
            if one.origin == "unknown":
                yield UnclearCode(f"The seed of the noise at {place} is a value of run time.")
            elif one.origin in ("constant", "identity"):
                if is_federated:
                    yield CodeFault(_what(one), app.places(one.seeding.call, one.noise))
                else:
                    yield UnclearCode(
                        f"The seed of the noise at {place} is fixed, and there is no client of "
                        "a federation in this code: in a run, no two processes may share it."
                    )


def _what(one: SeededNoise) -> str:
    if one.origin == "identity":
        return (
            "The generator of the noise is seeded by the client's name or the round, which the "
            "server knows: it can compute the noise and subtract it."
        )
    if one.is_per_message:
        return (
            "The generator of the noise gets the same seed in each message: every round has "
            "the same noise, and the difference of two messages has none."
        )
    return (
        "The generator of the noise gets the same seed in each process: clients share their "
        "noise, and whoever has this code can compute it."
    )
