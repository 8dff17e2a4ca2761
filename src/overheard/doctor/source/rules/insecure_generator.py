"""Noise from a generator that is not cryptographic."""

import ast
from typing import final

from overheard.doctor.source.code import keyword
from overheard.doctor.source.privacy import PrivateApp
from overheard.doctor.source.rule import CodeFault, Seen, SourceRule


@final
class InsecureGenerator(SourceRule):
    """Whoever learns the state of an ordinary generator can compute the noise."""

    name = "insecure-generator"
    severity = "theoretical"
    title = "noise from an ordinary random generator"
    mend = "Use a cryptographic generator: `PrivacyEngine(secure_mode=True)`."
    reference = 'JAX Privacy, "Sharp edges", random number generation'

    def concerns(self, app: PrivateApp) -> bool:
        """Return whether there is an engine of Opacus."""
        return any(_is_engine(site.dotted) for site in app.code.calls)

    def examine(self, app: PrivateApp) -> Seen:
        """Look whether engines are in secure mode."""
        for site in app.code.calls:
            if not _is_engine(site.dotted):
                continue
            mode = keyword(site.call, "secure_mode")
            if mode is None or (isinstance(mode, ast.Constant) and mode.value is False):
                yield CodeFault(
                    "The engine draws its noise from PyTorch's ordinary generator.",
                    app.places(site.call),
                )


def _is_engine(dotted: str) -> bool:
    return dotted.startswith("opacus.") and dotted.endswith(".PrivacyEngine")
