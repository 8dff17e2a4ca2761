"""Who is protected from whom by the mechanisms of a run, in sentences."""

import re
from collections.abc import Iterator

from overheard.core.accounting.accountant import format_epsilon
from overheard.core.mechanism import UNITS
from overheard.doctor.recorded.evidence import RunEvidence, StatedMechanism

NOT_RECOMPUTED = re.compile(r"ftrl|tree|matrix|bandmf|ddgauss|discrete|skellam", re.IGNORECASE)
"""Matches names of mechanisms whose noise is correlated or discrete: they are recognised, and
their epsilon is not recomputed."""


def protection_notes(run: RunEvidence) -> tuple[str, ...]:
    """Return who is protected from whom, by each mechanism of a run."""
    return tuple(note for one in run.mechanisms for note in _notes(one))


def _notes(one: StatedMechanism) -> Iterator[str]:
    mechanism = one.mechanism
    if mechanism.flaw:
        yield f"{one.name}: protects nobody, as {mechanism.flaw}."
        return
    what = UNITS[mechanism.unit]
    found = one.accounted.recomputed
    size = "" if found is None else f", epsilon {format_epsilon(found.against_everybody)}"
    run = one.accounted.run.rounds_text
    if mechanism.noised_at == "client":
        yield (
            f"{one.name}: protects {what} from everybody, the server included, as far as the "
            f"updates tell ({run}{size}, delta {mechanism.delta:g})."
        )
    else:
        yield (
            f"{one.name}: protects {what} from other clients and from readers of the models "
            f"({run}{size}, delta {mechanism.delta:g})."
        )
        yield (
            f"{one.name}: proves nothing against the server, which reads updates before it "
            "adds the noise, nor against those who share what the server reads."
        )
    if mechanism.unit == "record":
        yield (
            f"{one.name}: does not protect a client as a whole. A record that occurs in "
            "several clients spends the sum of their epsilons, at the sum of their deltas."
        )
    if found is not None and found.subsampled is not None:
        yield (
            f"{one.name}: epsilon {format_epsilon(found.subsampled)} against a single client "
            "that does not know who was sampled."
        )
    if NOT_RECOMPUTED.search(one.name):
        yield f"{one.name}: is recognised by its name, and its epsilon is not recomputed."
