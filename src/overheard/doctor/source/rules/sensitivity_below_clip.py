"""Local noise for a sensitivity that is smaller than the clip."""

import ast
from typing import final

from overheard.doctor.source.code import keyword
from overheard.doctor.source.privacy import PrivateApp
from overheard.doctor.source.rule import CodeFault, Seen, SourceRule, UnclearCode


@final
class SensitivityInCode(SourceRule):
    """`LocalDpMod` takes a sensitivity and a clip, and nothing holds them together."""

    name = "sensitivity-below-clip"
    severity = "critical"
    title = "noise for a sensitivity below the clip"
    mend = (
        "Give the clip as the sensitivity, or twice the clip if a neighbour replaces a client."
    )
    reference = "flwr.clientapp.mod.LocalDpMod; FLIP #832"

    def concerns(self, app: PrivateApp) -> bool:
        """Return whether there is a `LocalDpMod`."""
        return any(site.last == "LocalDpMod" for site in app.code.calls)

    def examine(self, app: PrivateApp) -> Seen:
        """Compare the sensitivity with the clip."""
        for site in app.code.calls:
            if site.last != "LocalDpMod":
                continue
            clip = keyword(site.call, "clipping_norm", 0)
            sensitivity = keyword(site.call, "sensitivity", 1)
            if clip is None or sensitivity is None or ast.dump(clip) == ast.dump(sensitivity):
                continue
            known = [app.code.constant(one, site.function) for one in (clip, sensitivity)]
            values = [one.value for one in known if one is not None]
            numbers = [float(one) for one in values if isinstance(one, int | float)]
            if len(numbers) < 2:
                yield UnclearCode(
                    f"The clip or the sensitivity of {app.places(site.call)[0]} is a value of "
                    "run time: a recording of the run shows them."
                )
            elif numbers[1] < numbers[0]:
                yield CodeFault(
                    f"Updates are clipped to {numbers[0]:g}, and the noise is scaled to a "
                    f"sensitivity of {numbers[1]:g}.",
                    app.places(site.call, clip, sensitivity),
                )
