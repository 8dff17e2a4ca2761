"""The report's table and sentences on epsilon: stated, recomputed and bounded by attacks."""

from collections.abc import Sequence
from math import ceil, floor, inf

from overheard.core.accounting.accountant import AccountedMechanism, format_epsilon
from overheard.core.defense import RunParameters
from overheard.core.mechanism import (
    CLIENT_SAMPLINGS,
    MEANINGLESS_EPSILON,
    RECORD_SAMPLINGS,
    UNITS,
    Mechanism,
)
from overheard.core.parties import Party
from overheard.drawing.figures import ReportTable
from overheard.drawing.sections import SectionBlock, Term
from overheard.epsilon.client_table import client_blocks
from overheard.epsilon.epsilon_results import EpsilonResult, epsilon_under_test
from overheard.epsilon.threshold_bound import EpsilonBound
from overheard.findings.names import make_printable, name_observers
from overheard.findings.number_format import NO_NUMBER, SPACE

COLUMN_NAMES = (
    "Arm",
    "Mechanism",
    "Observers",
    "Verdict",
    "Claimed",
    "Recomputed: PLD / RDP",
    "Measured: lower bound",
    "Estimated, no proof",
)

MAX_SHOWN_EPSILON = 1000.0
"""Epsilon above which its digits have no meaning."""


CERTAIN = "This follows from the settings, and is certain if they are those in use."


def epsilon_table(lines: Sequence[EpsilonResult]) -> ReportTable:
    """Return the table, with one line per mechanism and group of observers."""
    return ReportTable(
        "Epsilon: claimed, recomputed from the settings, and lower bounds from attacks",
        COLUMN_NAMES,
        tuple(_cells(line) for line in lines),
        4,
    )


def epsilon_blocks(lines: Sequence[EpsilonResult]) -> tuple[SectionBlock, ...]:
    """Return the table with its introduction; nothing if no mechanism adds noise."""
    if not lines:
        return ()
    table = SectionBlock("Claimed and measured epsilon", (_NOTE,), (epsilon_table(lines),))
    return (table, *client_blocks(lines))


def epsilon_terms(lines: Sequence[EpsilonResult]) -> tuple[Term, ...]:
    """Return the terms that explain the table; nothing if there is no table."""
    return (_TERM,) if lines else ()


_NOTE = (
    "The epsilon that a mechanism claims, the epsilon recomputed from its noise by two "
    "accountants, and a lower bound from membership attacks. A claim is false only if it is "
    "below a lower bound of what its settings give. A small measured bound is no proof "
    "of privacy. One from canaries above the claim is a violation. From other records it "
    "contradicts the claim only if records are independent given the models. An estimate is "
    "sharper than the bound, and may exceed a true claim."
)

_TERM = Term(
    "Epsilon claimed, recomputed, measured",
    "The unit is what the promise protects: one record or all data of a client. An observer's "
    "view is at most e to the power of epsilon times as likely with the unit's data as with "
    "other data in their place, except with probability delta. Recomputed: an upper bound "
    "from noise, rounds and sampling, computed from the settings alone (PLD: the "
    "distribution of the privacy loss, tight; RDP: Renyi divergences, looser, as a "
    "check, and the only figure that counts on batches of a fixed size). Two epsilons can be "
    "compared only if they are for the same unit and the same relation, "
    "such as one record added or removed. Measured: a lower bound from these observers' "
    "membership attacks. From canaries, it counts the right guesses among the surest ones, "
    f"whose number is fixed beforehand, at 95{SPACE}% confidence for all claims together. If "
    "the claim is a mechanism, the bound is that of such mechanisms (Mahloujifar et al. 2024), "
    "else of a bare epsilon (Steinke et al. 2023). From other records, it follows from the "
    f"true and false positive rates by exact intervals, at 95{SPACE}% confidence for each "
    "line, and with n records cannot exceed ln(n / 3.7). What is chosen by scores, such as the "
    "attack, is chosen on one half of the records, and the bound is computed on the other "
    "half. Estimated: from the same guesses, as if all canaries were independent (Xiang et al. "
    "2025). "
    "Example counts and losses that are sent in clear text are not covered by any claim.",
)


def epsilon_sentences(lines: Sequence[EpsilonResult]) -> tuple[str, ...]:
    """Return a sentence on each claim that is refuted, doubtful, too small or empty."""
    # A flawed mechanism has the same sentence for all observers.
    has_arms = len({line.arm for line in lines}) > 1
    return tuple(
        dict.fromkeys(
            _broken_claim_sentence(line, with_arm=has_arms)
            for line in lines
            if _is_broken(line)
        )
    )


def epsilon_summaries(lines: Sequence[EpsilonResult]) -> tuple[str, ...]:
    """Return a sentence on each mechanism: epsilon promised, recomputed and measured."""
    has_arms = len({line.arm for line in lines}) > 1
    by_mechanism: dict[tuple[str, str], list[EpsilonResult]] = {}
    for line in lines:
        by_mechanism.setdefault((line.arm, line.defense.settings), []).append(line)
    return tuple(
        f"{_name(found[0], with_arm=has_arms)}: {_promise_words(found[0])}. "
        f"{_recomputed_words(found[0])}{_claim_words(found[0])}. {_measured_words(found)}."
        for found in by_mechanism.values()
    )


def _name(line: EpsilonResult, *, with_arm: bool) -> str:
    name, _, _ = line.defense.settings.partition("(")
    arm = f" under “{make_printable(line.arm)}”" if with_arm else ""
    return f"{make_printable(name)}{arm}"


def _promise_words(line: EpsilonResult) -> str:
    if line.accounted.mechanism.stated is None:
        return "no epsilon is promised"
    unit = UNITS[line.accounted.mechanism.unit]
    return f"an epsilon of {_claimed(line)} is promised, for {unit}"


def _recomputed_words(line: EpsilonResult) -> str:
    found, flaw = line.accounted.recomputed, line.accounted.mechanism.flaw
    if found is None:
        doubt = make_printable(line.accounted.doubt)
        return f"It was not recomputed from the settings: {doubt}"
    smallest = found.against_everybody
    figure = _figure(smallest)
    if _is_stated_per_round(line):
        figure = f"{_figure(found.one_round)} per round and {figure} for the whole run"
    figure += _rounds_words(line)
    if found.subsampled is not None:
        smallest = found.subsampled
        # Only other clients may not know who is drawn; the server draws.
        figure += f" ({_figure(smallest)} against a client that does not know who is drawn)"
    if line.accounted.mechanism.stated is None:
        figure += f" for {UNITS[line.accounted.mechanism.unit]}"
    worth = ", which is no guarantee in practice" if smallest > MEANINGLESS_EPSILON else ""
    if flaw:
        return (
            f"Its settings would give an epsilon of {figure} at best{worth}. As they "
            f"are, there is no guarantee at all: {make_printable(flaw)}"
        )
    return f"Its settings give an epsilon of {figure}{worth}"


def _rounds_words(line: EpsilonResult) -> str:
    run = line.accounted.run
    if run.recorded is not None:
        return f" for the {run.rounds:,} planned rounds ({run.rounds_text})"
    return f" for the {run.rounds_text}, and more rounds may follow" if run.is_open else ""


def _claim_words(line: EpsilonResult) -> str:
    """Return whether the promise is true for the settings; "" if another sentence says it."""
    match line.accounted.claim:
        case "holds":
            return ", so the promise holds if the settings are those in use"
        case "not confirmed" if line.accounted.recomputed is not None:
            return f". The promise is not confirmed, and may be true: {_doubt(line)}"
        case _:
            return ""


def _doubt(line: EpsilonResult) -> str:
    """Return why a claim below an upper bound is neither confirmed nor false."""
    return make_printable(line.accounted.doubt) or (
        "it lies between a lower and an upper bound of the true epsilon, "
        f"{_bounds_words(line.accounted)}"
    )


def _bounds_words(accounted: AccountedMechanism) -> str:
    found = accounted.recomputed
    if found is None:
        return "which are not known"
    lower, upper = found.lower, found.smallest
    if accounted.mechanism.stated_for == "round":
        lower, upper = found.one_round_lower, found.one_round
    return f"{floor(lower * 100) / 100:.2f} and {_round_up(upper)}"


def _figure(epsilon: float) -> str:
    """Format an upper bound for a sentence, rounded up; without decimals if it is large."""
    if epsilon > MAX_SHOWN_EPSILON:
        return f"more than {MAX_SHOWN_EPSILON:g}"
    return f"{ceil(epsilon)}" if epsilon > 10 else _round_up(epsilon)


def _measured_words(lines: Sequence[EpsilonResult]) -> str:
    bounds = [line.lower_bound for line in lines if line.lower_bound is not None]
    if not bounds:
        return "No attack of this audit could measure epsilon"
    strongest = max(bounds, key=lambda bound: bound.epsilon)
    return f"Attacks show an epsilon of {_round_down(strongest)} or more"


def _is_broken(line: EpsilonResult) -> bool:
    if line.verdict == "flawed":
        return line.accounted.mechanism.stated is not None
    return line.verdict in ("violated", "contradicted", "estimate", "false")


def _broken_claim_sentence(line: EpsilonResult, *, with_arm: bool) -> str:
    name = _name(line, with_arm=with_arm)
    what = f"The promise of differential privacy by {name}"
    if line.verdict == "flawed":
        return (
            f"{what} (epsilon {_claimed(line)}) guarantees nobody anything: "
            f"{make_printable(line.accounted.mechanism.flaw)}. {CERTAIN}"
        )
    if line.verdict == "false" or line.lower_bound is None:
        return (
            f"{what} is false: epsilon {_claimed(line)} is promised, and with its settings no "
            f"epsilon below {_lower_as_claimed(line)} can be true. {CERTAIN}"
        )
    tested = epsilon_under_test(
        line.accounted,
        line.observers,
        line.upper_bound,
        are_cohorts_known=line.are_cohorts_known,
    )
    most = format_epsilon(inf if tested is None else tested)
    if line.verdict == "estimate":
        return (
            f"{what} is doubtful against {_observer_names(line.observers)}: "
            f"{make_printable(line.attack_label)} finds an epsilon of "
            f"{_round_down(line.lower_bound)} or more on canaries, but the promise allows at "
            f"most {most}. It is an estimate: the attacks, guesses or level of the plan were "
            "changed after the canaries were drawn."
        )
    if line.verdict == "contradicted":
        return (
            f"{what} is doubtful against {_observer_names(line.observers)}: if records are "
            f"independent given the models, {make_printable(line.attack_label)} proves an "
            f"epsilon of {_round_down(line.lower_bound)} or more (95 % confidence), but the "
            f"promise allows at most {most}. Canaries would prove "
            "it."
        )
    return (
        f"{what} does not hold against {_observer_names(line.observers)}: "
        f"{make_printable(line.attack_label)} "
        f"proves an epsilon of {_round_down(line.lower_bound)} or more (95 % confidence), but "
        "the promise "
        f"allows at most {most}. The run adds less noise than "
        "stated, or the noise covers less."
    )


def _cells(line: EpsilonResult) -> tuple[str, ...]:
    return (
        make_printable(line.arm),
        _mechanism(line),
        _observer_names(line.observers),
        _verdict(line),
        _claimed(line),
        _recomputed(line),
        NO_NUMBER if line.lower_bound is None else _round_down(line.lower_bound),
        NO_NUMBER
        if line.lower_bound is None or line.lower_bound.estimate is None
        else f"{line.lower_bound.estimate:.2f}",
    )


def _mechanism(line: EpsilonResult) -> str:
    """Describe all settings that its epsilon depends on, and who adds the noise and clips."""
    mechanism, run = line.accounted.mechanism, line.accounted.run
    name, _, _ = line.defense.settings.partition("(")
    steps = "" if mechanism.steps == 1 else f" of {mechanism.steps} steps"
    clips = "nobody" if mechanism.bounded_at is None else f"the {mechanism.bounded_at}"
    return (
        f"{make_printable(name)}: Gaussian, noise multiplier {mechanism.noise_multiplier:g}, "
        "added by "
        f"the {mechanism.noised_at}; clip {mechanism.clip:g}, enforced by {clips}; covers "
        f"{UNITS[mechanism.unit]}, {mechanism.relation_words}; {run.rounds_text}{steps}, "
        f"{_sampling_words(mechanism, run)}, delta {mechanism.delta:g}"
    )


def _sampling_words(mechanism: Mechanism, run: RunParameters) -> str:
    """Describe the sampling that the epsilon counts on."""
    if mechanism.unit == "record":
        kind, rate = mechanism.record_sampling, mechanism.record_rate
        if kind is None:
            return "sampling of records not stated"
        words = RECORD_SAMPLINGS[kind]
        return words if rate is None else f"{words} (rate {rate:.3g})"
    if not run.samples_clients:
        return CLIENT_SAMPLINGS["none"]
    if run.sampling is None:
        return "sampling of clients not stated"
    if not mechanism.is_drawn:
        return "sampling of clients not counted"
    return f"{CLIENT_SAMPLINGS[run.sampling]} (rate {run.sampling_rate:.3g})"


def _observer_names(observers: tuple[Party, ...]) -> str:
    return name_observers(observers) if observers else "readers of the global models alone"


def _claimed(line: EpsilonResult) -> str:
    mechanism = line.accounted.mechanism
    if mechanism.stated is None:
        return NO_NUMBER
    return f"{mechanism.stated:g}" + (" per round" if mechanism.stated_for == "round" else "")


def _is_stated_per_round(line: EpsilonResult) -> bool:
    mechanism = line.accounted.mechanism
    return mechanism.stated is not None and mechanism.stated_for == "round"


def _lower_as_claimed(line: EpsilonResult) -> str:
    """Return the lower bound of the epsilon of what the claim covers: a round, or the run."""
    found = line.accounted.recomputed
    if found is None:
        return NO_NUMBER
    if _is_stated_per_round(line):
        return f"{floor(found.one_round_lower * 100) / 100:.2f} per round"
    return f"{floor(found.lower * 100) / 100:.2f}"


def _recomputed(line: EpsilonResult) -> str:
    found = line.accounted.recomputed
    if found is None:
        return NO_NUMBER
    rdp = NO_NUMBER if found.rdp is None else _round_up(found.rdp)
    both = f"{_round_up(found.pld)} / {rdp}"
    return (
        both
        if found.subsampled is None
        else f"{both}; with sampling: {_round_up(found.subsampled)}"
    )


def _round_up(epsilon: float) -> str:
    """Format an upper bound, rounded up so that it is never understated."""
    return "> 1000" if epsilon > MAX_SHOWN_EPSILON else f"{ceil(epsilon * 100) / 100:.2f}"


def _round_down(bound: EpsilonBound) -> str:
    """Format a lower bound, rounded down so that it is never overstated."""
    return f"{floor(bound.epsilon * 100) / 100:.2f}"


def _verdict(line: EpsilonResult) -> str:
    """Return the verdict with the evidence, or with what to do if nothing was measured."""
    bound, ceiling = line.lower_bound, line.upper_bound
    idle = (
        ", but protects nobody" if ceiling is not None and ceiling > MEANINGLESS_EPSILON else ""
    )
    evidence = (
        ""
        if bound is None
        else f" ({make_printable(line.attack_label)}, {bound.members:,} members and "
        f"{bound.non_members:,} non-members)"
    )
    is_recomputed = line.accounted.recomputed is not None
    no_bound = "no upper bound is known" if is_recomputed else "not recomputed"
    words = {
        "flawed": f"guarantees nothing: {make_printable(line.accounted.mechanism.flaw)}",
        "outside guarantee": "guarantees nothing against this observer, which reads unnoised "
        "values",
        "false": f"claim is false: no epsilon below {_lower_as_claimed(line)} is true for its "
        "settings",
        "not confirmed": f"claim not confirmed, may be true: {_doubt(line)}",
        "violated": f"violated: attacks on canaries prove a larger epsilon{evidence}",
        "contradicted": "contradicted if records are independent: attacks then prove a larger "
        f"epsilon{evidence}; use canaries",
        "estimate": "not proven: attacks on canaries find a larger epsilon, but the plan was "
        f"changed after they were drawn{evidence}",
        "holds": f"holds as far as measured{idle}{evidence}",
        "not tested": "not measured: add data.candidates and a membership attack by this "
        "observer",
        "refused": "not measured: no membership attack could run",
        "not exchangeable": "no lower bound: members and non-members may differ in "
        "distribution; use "
        "canaries",
        "unchecked": "no lower bound: the ground truth does not say which records are members",
        "unaccounted": f"{no_bound}: {make_printable(line.accounted.doubt)}",
    }[line.verdict]
    is_untested = line.verdict in (
        "holds",
        "not tested",
        "refused",
        "not exchangeable",
        "unchecked",
    )
    is_true = is_untested and line.accounted.claim == "holds"
    return f"claim holds for its settings; {words}" if is_true else words
