"""Batches from a shuffled loader are accounted for as if by Poisson sampling."""

import ast
import re
from typing import final

from overheard.doctor.source.accountants import READ
from overheard.doctor.source.code import CallSite, keyword
from overheard.doctor.source.privacy import PrivateApp
from overheard.doctor.source.rule import CodeFault, Seen, SourceRule

_POISSON = re.compile(
    r"dp_accounting\.(.*\.)?PoissonSampledDpEvent|opacus\.accountants\..*"
    r"|tensorflow_privacy\..*compute_dp_sgd_privacy\w*|tensorflow_privacy\..*compute_rdp\w*"
    r"|jax_privacy\..*dpsgd_event"
)
_SAMPLERS = re.compile(
    r"poisson|uniformwithreplacement|dpdataloader|bernoulli|choice", re.IGNORECASE
)


@final
class ShuffledInCode(SourceRule):
    """Amplification by sampling needs batches that are drawn anew, each record by a coin."""

    name = "shuffled-as-poisson"
    severity = "critical"
    title = "shuffled batches are accounted for as Poisson samples"
    mend = (
        "Draw batches by Poisson sampling, or account for a Gaussian mechanism once an epoch, "
        "without amplification."
    )
    reference = (
        'JAX Privacy, "Sharp edges", accounting and batch selection; meta-pytorch/opacus #80'
    )

    def concerns(self, app: PrivateApp) -> bool:
        """Return whether an epsilon is computed for samples of records."""
        return bool(_accounting(app)) or any(_is_private(one) for one in app.code.calls)

    def examine(self, app: PrivateApp) -> Seen:
        """Look how batches are drawn where an epsilon is computed."""
        reads = [one for one in app.code.calls if one.last in READ]
        for site in app.code.calls:
            if not _is_private(site):
                continue
            sampling = keyword(site.call, "poisson_sampling")
            known = app.code.constant(sampling, site.function)
            is_claimed = bool(reads) or site.last.endswith("with_epsilon")
            if known is not None and known.value is False and is_claimed:
                yield CodeFault(
                    "The engine keeps the loader's own batches (`poisson_sampling=False`), and "
                    "its accountant computes the epsilon of Poisson samples.",
                    app.places(sampling or site.call, *(one.call for one in reads[:1])),
                )
        by_hand = _accounting(app)
        if not by_hand or any(_is_private(one) for one in app.code.calls):
            return
        if any(_SAMPLERS.search(name) for name in _names(app)):
            return
        for site in app.code.calls:
            if _shuffles(app, site):
                yield CodeFault(
                    "Batches are the pieces of a shuffled data set, and the epsilon is that of "
                    "Poisson samples.",
                    app.places(site.call, by_hand[0].call),
                )


def _accounting(app: PrivateApp) -> list[CallSite]:
    return [
        site
        for site in app.code.calls
        if _POISSON.fullmatch(site.dotted) and not site.last.startswith("create_")
    ]


def _is_private(site: CallSite) -> bool:
    return site.last in ("make_private", "make_private_with_epsilon")


def _shuffles(app: PrivateApp, site: CallSite) -> bool:
    if site.last.endswith("DataLoader"):
        known = app.code.constant(keyword(site.call, "shuffle"), site.function)
        return known is not None and known.value is True
    # Otherwise, it is a data set of TensorFlow that is shuffled and then cut into batches.
    func = site.call.func
    return (
        site.last == "batch"
        and isinstance(func, ast.Attribute)
        and any(
            isinstance(one, ast.Attribute) and one.attr == "shuffle"
            for one in ast.walk(func.value)
        )
    )


def _names(app: PrivateApp) -> list[str]:
    """Return the names of what is called, and of the arguments, but those of accounting."""
    found = [site.last for site in app.code.calls if not _POISSON.fullmatch(site.dotted)]
    return found + [one.arg for site in app.code.calls for one in site.call.keywords if one.arg]
