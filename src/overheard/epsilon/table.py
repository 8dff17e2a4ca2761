"""Tells what is claimed of epsilon beside what settings come to and what attacks prove."""

from collections.abc import Sequence
from math import ceil, floor

from overheard.core.accountant import HOLLOW, MISSING, told
from overheard.core.parties import Party
from overheard.drawing.plates import Table
from overheard.drawing.sections import SectionBlock, Term
from overheard.epsilon.bound import EpsilonBound
from overheard.epsilon.epsilon import EpsilonLine
from overheard.findings.figures import NO_FIGURE, SPACE
from overheard.findings.names import shown, together

HEADS = (
    "Arm",
    "Mechanism",
    "Towards",
    "Verdict",
    "Claimed",
    "Recomputed: PLD / RDP",
    "Measured: at least",
)

UNITS = {"client": "all data of a client", "record": "one record of a client"}

HOPELESS = 1000.0
"""Epsilon above which its digits tell nothing."""


def epsilon_table(lines: Sequence[EpsilonLine]) -> Table:
    """A line a mechanism and group of observers."""
    return Table(
        "Epsilon: claimed, recomputed from the settings, and what attacks prove at least",
        HEADS,
        tuple(_cells(line) for line in lines),
        4,
    )


def epsilon_blocks(lines: Sequence[EpsilonLine]) -> tuple[SectionBlock, ...]:
    """The table and what stands above it; nothing where no mechanism adds noise."""
    if not lines:
        return ()
    return (SectionBlock("Claimed against measured", (_NOTE,), (epsilon_table(lines),)),)


def epsilon_terms(lines: Sequence[EpsilonLine]) -> tuple[Term, ...]:
    """What a reader of the table looks up; nothing where there is none."""
    return (_TERM,) if lines else ()


_NOTE = (
    "What a mechanism claims, what its noise comes to by two accountants, and what attacks on "
    "membership prove epsilon to be at least. A small measured figure is no proof of privacy; "
    "one above what is claimed is a violation."
)

_TERM = Term(
    "Epsilon claimed, recomputed, measured",
    "What an observer reads is at most e to the power of epsilon times as likely under these "
    "data of the unit as under others, but for a chance of delta. Recomputed: an upper bound "
    "from noise, rounds and the draw of clients, without a look at the run (PLD: privacy "
    "loss distributions, tight; RDP: Renyi divergences, looser, as a check). Measured: a "
    "lower bound from how well the attacks of these observers tell records that were trained "
    f"on from records of nobody, by exact intervals, at 95{SPACE}% confidence for each line; "
    "attack and threshold were chosen on one half of the records, and the bound reckoned on "
    "the other. It speaks of single records, of those that were asked about, and with n of "
    "them it cannot exceed the logarithm of n over 3.7. Example counts and losses that "
    "travel in clear are outside of every claim.",
)


def epsilon_words(lines: Sequence[EpsilonLine]) -> tuple[str, ...]:
    """A sentence on each claim that is broken, or that promises less than it seems to."""
    # What holds towards nobody is said once for all observers.
    return tuple(dict.fromkeys(_alarm(line) for line in lines if _is_broken(line)))


def _is_broken(line: EpsilonLine) -> bool:
    if line.standing == "flawed":
        return line.accounted.mechanism.stated is not None
    return line.standing in ("violated", "overclaimed")


def _alarm(line: EpsilonLine) -> str:
    what = f"{shown(line.arm)}: the claim of {shown(line.defense.settings)}"
    if line.standing == "flawed":
        return (
            f"{what}, epsilon {_claimed(line)}, promises nothing to anybody: "
            f"{shown(line.accounted.mechanism.flaw)}."
        )
    if line.standing == "overclaimed" or line.bound is None or line.ceiling is None:
        return (
            f"{what} is smaller than what its settings come to: epsilon {_claimed(line)} is "
            f"claimed, {_recomputed(line)} recomputed (PLD / RDP)."
        )
    return (
        f"{what} does not hold towards {_towards(line.observers)}: {shown(line.label)} "
        f"proves an epsilon of {_floored(line.bound)} or more (95 % confidence), and "
        f"{told(line.ceiling)} is all that there may be. Less noise is in force than is said, "
        "or it covers less."
    )


def _cells(line: EpsilonLine) -> tuple[str, ...]:
    return (
        shown(line.arm),
        _mechanism(line),
        _towards(line.observers),
        _verdict(line),
        _claimed(line),
        _recomputed(line),
        NO_FIGURE if line.bound is None else _floored(line.bound),
    )


def _mechanism(line: EpsilonLine) -> str:
    """All that its epsilon hangs on, and who sees what before the noise."""
    mechanism, run = line.accounted.mechanism, line.accounted.run
    name, _, _ = line.defense.settings.partition("(")
    rate = run.sampling_rate if mechanism.is_drawn else 1.0
    plural = "" if run.rounds == 1 else "s"
    steps = "" if mechanism.steps == 1 else f" of {mechanism.steps} steps"
    clips = "nobody" if mechanism.bounded_at is None else f"the {mechanism.bounded_at}"
    return (
        f"{shown(name)}: Gaussian, noise multiplier {mechanism.noise_multiplier:g}, added by "
        f"the {mechanism.noised_at}; clip {mechanism.clip:g}, enforced by {clips}; covers "
        f"{UNITS[mechanism.unit]}, {run.rounds} round{plural}{steps}, sampling rate "
        f"{rate:.3g}, delta {mechanism.delta:g}"
    )


def _towards(observers: tuple[Party, ...]) -> str:
    return together(observers) if observers else "whoever reads the models alone"


def _claimed(line: EpsilonLine) -> str:
    mechanism = line.accounted.mechanism
    if mechanism.stated is None:
        return NO_FIGURE
    return f"{mechanism.stated:g}" + (" a round" if mechanism.stated_for == "round" else "")


def _recomputed(line: EpsilonLine) -> str:
    found = line.accounted.recomputed
    if found is None:
        return NO_FIGURE
    both = f"{_raised(found.pld)} / {_raised(found.rdp)}"
    return both if found.drawn is None else f"{both}; drawn: {_raised(found.drawn)}"


def _raised(epsilon: float) -> str:
    """Rounded up, so that no more is promised than holds."""
    return "> 1000" if epsilon > HOPELESS else f"{ceil(epsilon * 100) / 100:.2f}"


def _floored(bound: EpsilonBound) -> str:
    """Rounded down, so that no more is said than was proven."""
    return f"{floor(bound.epsilon * 100) / 100:.2f}"


def _verdict(line: EpsilonLine) -> str:
    """What it amounts to, by whom, and what to do where nothing was measured."""
    bound, asked = line.bound, "add data.candidates and an attack on membership"
    idle = ", and protects nobody" if line.ceiling is not None and line.ceiling > HOLLOW else ""
    on = (
        ""
        if bound is None
        else f" ({shown(line.label)}, {bound.members:,} records of clients and "
        f"{bound.outsiders:,} of nobody)"
    )
    return {
        "flawed": f"promises nothing: {shown(line.accounted.mechanism.flaw)}",
        "uncovered": "promises nothing to this observer, which reads what has no noise yet",
        "overclaimed": "claims less than its settings come to",
        "violated": f"violated: attacks prove more{on}",
        "holds": f"holds as far as measured{idle}{on}",
        "unasked": f"not asked: {asked} by this observer",
        "refused": "not measured: no attack on membership could run",
        "unlike": "not bounded: clients' records may differ in kind from those of nobody; "
        "canaries do not",
        "unchecked": "not bounded: no truth tells which records were trained on",
        "unaccounted": f"not recomputed: {MISSING}",
    }[line.standing]
