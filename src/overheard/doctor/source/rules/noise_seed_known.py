"""The server knows the seed of the noise."""

from typing import final

from overheard.doctor.source.privacy import PrivateApp
from overheard.doctor.source.rule import CodeFault, Seen, SourceRule
from overheard.doctor.source.seeds import seeded_noise


@final
class NoiseSeedKnown(SourceRule):
    """Whoever knows the seed can compute the noise and subtract it."""

    name = "noise-seed-known"
    severity = "critical"
    title = "the server knows the seed of the noise"
    mend = "Draw the seed in the client (`os.urandom`) and send it to nobody."
    reference = 'JAX Privacy, "Sharp edges", public and private metadata'

    def concerns(self, app: PrivateApp) -> bool:
        """Return whether a generator of noise is seeded."""
        return any(True for _ in seeded_noise(app))

    def examine(self, app: PrivateApp) -> Seen:
        """Look for seeds that come from the server, or go to it."""
        for one in seeded_noise(app):
            if one.origin == "message":
                yield CodeFault(
                    "The seed of the noise comes from a message of the server.",
                    app.places(one.seeding.call, one.noise),
                )
            seeds = {
                value
                for given in one.seeding.call.args
                for value in app.values(given, one.seeding.function)
            }
            for sent in app.sent:
                sources = app.code.sources(sent.flow, derived=True)
                if any(flow.node in seeds for flow in sources):
                    yield CodeFault(
                        f"The seed of the noise is sent to the server as {sent.key!r}.",
                        app.places(sent.node, one.seeding.call),
                    )
