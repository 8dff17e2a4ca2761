"""The noise is zero."""

from typing import final

from overheard.doctor.source.code import keyword
from overheard.doctor.source.privacy import PrivateApp
from overheard.doctor.source.rule import CodeFault, Seen, SourceRule


@final
class NoNoiseInCode(SourceRule):
    """A noise multiplier of zero adds nothing."""

    name = "no-noise-or-clip"
    severity = "critical"
    title = "the noise multiplier is zero"
    mend = "Choose the noise multiplier for the epsilon of all rounds."
    reference = "raptor7197/caamas #36"

    def concerns(self, app: PrivateApp) -> bool:
        """Return whether a noise multiplier is stated."""
        return any(
            app.code.constant(keyword(site.call, "noise_multiplier"), site.function)
            for site in app.code.calls
        )

    def examine(self, app: PrivateApp) -> Seen:
        """Look for a noise multiplier of zero."""
        for site in app.code.calls:
            given = keyword(site.call, "noise_multiplier")
            known = app.code.constant(given, site.function)
            if given is not None and known is not None and known.value == 0:
                yield CodeFault("The noise multiplier is 0.", app.places(given, site.call))
