"""Tells in plain sentences who learns what about whom, how well, and beside which guess."""

from dataclasses import dataclass

import numpy as np

from overheard.auditing.exposures import arms
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.findings.exposures import Case, Exposure, Verdict
from overheard.findings.figures import NO_FIGURE, measure, percent
from overheard.findings.finding import Audit
from overheard.findings.names import all_others, called, possessive, shown, together, told_apart
from overheard.findings.row import Row
from overheard.questions.attribute.scorer import AttributeScorer
from overheard.questions.identity.scorer import IdentityScorer
from overheard.questions.label_shares.pages.intervals import interval_words
from overheard.questions.membership.pages.membership_words import membership_words
from overheard.questions.membership.scorer import MembershipScorer
from overheard.questions.same_sender.scorer import SameSenderScorer
from overheard.questions.shift.pages.shift_words import shift_words
from overheard.questions.shift.scorer.shift import ShiftScorer
from overheard.report.claims import claim_words
from overheard.report.identity_words import identity_words

BADGES: dict[Verdict, str] = {
    "leaks": "Leaks",
    "unclear": "Not told apart from guessing",
    "silent": "No better than guessing",
    "unjudged": "Cannot be judged",
    "unchecked": "Claimed, not checked",
    "unmeasured": "Not measured",
}

ABSENCE = frozenset({"null_precision", "null_recall", "null_exact"})
"""Scores of an attack that says which classes a target does not hold."""


def headlines(audit: Audit, seed: Seed) -> tuple[str, ...]:
    """One sentence per arm and observers, such as a terminal has room for."""
    return tuple(
        f"{shown(arm.name)}: {exposure_words(exposure)[0]}"
        for arm in arms(audit, seed)
        for exposure in arm.exposures
    )


def told_row(case: Case) -> Row:
    """The figure that the sentences give: of shares the worst class, else the headline."""
    return case.whole["linf"] if {"l1", "linf"} <= case.whole.keys() else case.row


def exposure_words(exposure: Exposure) -> tuple[str, ...]:
    """What these observers get out of this arm, in a few sentences."""
    if not exposure.cases:
        return claim_words(exposure) if exposure.claims else (_unmeasured(exposure),)
    case = exposure.cases[0]
    return (
        _headline(exposure, case),
        *shift_words(case),
        *identity_words(case),
        *membership_words(case),
        *_misplaced(exposure, case),
        *_read_best(exposure, case),
        *_absent(exposure),
        *interval_words(exposure),
        f"{_choice(exposure)} {_spread(case.row)}",
    )


def _unmeasured(exposure: Exposure) -> str:
    whom = all_others(exposure.observers) if exposure.about == "cohort" else "each client"
    if exposure.rows and exposure.question != ShiftScorer.name:
        return (
            f"How well {together(exposure.observers)} can tell who is behind {whom} was not "
            "measured: there is nobody among them whom it knows, or there were only controls. "
            "Not measured is not the same as no leak."
        )
    if exposure.rows:
        return (
            f"How well {together(exposure.observers)} can tell a shift of {possessive(whom)} "
            "data was not measured: that takes runs with a shift, each beside its control "
            "without, and there are none. Not measured is not the same as no leak."
        )
    lacks = dict.fromkeys(need for refusal in exposure.refusals for need in refusal.missing)
    return (
        f"What {together(exposure.observers)} can learn about {whom} was not measured: no "
        f"attack could run for lack of {' and '.join(map(shown, lacks))}. Not measured is not "
        "the same as no leak."
    )


def _headline(exposure: Exposure, case: Case) -> str:
    row = told_row(case)
    who, count = together(exposure.observers), len(row.rounds)
    subject, reading = f"{who[0].upper()}{who[1:]}", _reading(row, _whose(exposure, case))
    leads: dict[Verdict, str] = {
        "leaks": reading.well,
        "unclear": f"could not be told apart from a guesser about {reading.what}: the best "
        f"attack is {reading.badly}",
        "silent": f"reads {reading.what} no better than a guesser: the best attack is "
        f"{reading.badly}",
        "unjudged": f"{reading.well}, too few answers to judge",
    }
    told = measure(row.score)
    beside = "no guess to compare" if row.blind is None else f"guessing: {told.tell(row.blind)}"
    span = told.span(row.value)
    if span != NO_FIGURE:
        beside += f"; 95 % interval {span}"
    heard = f"from {count} round{'' if count == 1 else 's'}"
    return f"{subject} {leads[exposure.verdict]} ({beside}), {heard}."


@dataclass(frozen=True, slots=True)
class _Reading:
    """What is read, and how a sentence says that it is, or how badly."""

    what: str
    well: str
    badly: str


@dataclass(frozen=True, slots=True)
class _Personal:
    """How a question about the person behind a target is spoken of."""

    what: str
    well: str
    badly: str

    def of(self, value: str) -> _Reading:
        return _Reading(self.what, f"{self.well} {value}", f"{self.badly} {value}")


_PERSONAL = {
    IdentityScorer.name: _Personal(
        "who is behind what is sent",
        "names who is behind what is sent, right at the first try in",
        "right at the first try in",
    ),
    SameSenderScorer.name: _Personal(
        "which targets are of one sender",
        "tells which targets are of one sender, with an average precision of",
        "at an average precision of",
    ),
    AttributeScorer.name: _Personal(
        "what the person behind a target is like",
        "tells what the person behind a target is like, right in",
        "right in",
    ),
}


def _reading(row: Row, whose: str) -> _Reading:
    told = measure(row.score)
    value = told.tell(row.value.mean)
    if row.score == "linf":
        where, what = f"{value} on the class it gets most wrong", f"{whose} class shares"
        return _Reading(what, f"reads {what} to within {where}", f"off by {where}")
    if row.score == "auc":
        what = f"a shift of {whose} data"
        return _Reading(
            what,
            f"tells {what} from an exchange without shift in {value} pairs",
            f"right in {value} pairs of a shift and an exchange without",
        )
    if row.question == MembershipScorer.name:
        what = f"which records are among {whose} data"
        return _Reading(
            what,
            f"tells {what}, right in {value} pairs of one that is and one of nobody",
            f"right in {value} pairs of one that is and one of nobody",
        )
    if row.question in _PERSONAL:
        return _PERSONAL[row.question].of(value)
    figure = f"{told.title} {value}"
    what = f"{whose} {shown(row.question).replace('_', ' ')}"
    return _Reading(what, f"reads {what} with {figure}", f"at {figure}")


def _whose(exposure: Exposure, case: Case) -> str:
    # Of a question about time, those to whom something happened.
    targets = {
        finding.target
        for finding in case.findings
        if finding.timeline is None or finding.true_since is not None
    }
    if exposure.about == "cohort":
        return possessive(all_others(exposure.observers))
    if len(targets) > 1:
        return "each client's"
    return possessive(called(targets.pop(), exposure.observers))


def _misplaced(exposure: Exposure, case: Case) -> tuple[str, ...]:
    row = case.whole.get("l1")
    if row is None or row.blind is None:
        return ()
    told = measure("l1")
    cohort = possessive(all_others(exposure.observers))
    owner = cohort if exposure.about == "cohort" else "a client's"
    return (
        f"It puts {told.tell(row.value.mean)} of {owner} data in the wrong class; "
        f"a blind guess {told.tell(row.blind)}.",
    )


def _read_best(exposure: Exposure, case: Case) -> tuple[str, ...]:
    """The client whose data are read best, by the score that the headline tells."""
    row = told_row(case)
    if row.question in _PERSONAL:
        # A person is behind many targets: user by user they are drawn as a histogram.
        return ()
    targets = list(
        dict.fromkeys(
            finding.target
            for finding in case.findings
            if any(score.name == row.score for score in finding.scores)
        )
    )
    if len(targets) < 2:
        return ()
    told, sign = measure(row.score), 1 if row.better == "lower" else -1
    readings = {target: _mean_score(case, target, row.score) for target in targets}
    best = min(targets, key=lambda target: sign * readings[target].value)
    value, blind = told.tell(readings[best].value), readings[best].blind
    guess = "" if blind is None else f" (guessing: {told.tell(blind)})"
    chance = (
        ""
        if exposure.verdict == "leaks"
        else f"; among {len(targets)} clients some come out well by chance"
    )
    how = f"to within {value}" if row.score == "linf" else value
    return (f"Read best: {called(best, exposure.observers)}, {how}{guess}{chance}.",)


@dataclass(frozen=True, slots=True)
class _Mean:
    """One target's figure over its runs, beside the best guess."""

    value: float
    blind: float | None


def _mean_score(case: Case, target: Party, name: str) -> _Mean:
    scores = [
        score
        for finding in case.findings
        if finding.target == target
        for score in finding.scores
        if score.name == name
    ]
    blinds = [score.blind for score in scores if score.blind is not None]
    value = float(np.mean([score.value for score in scores]))
    return _Mean(value, float(np.mean(blinds)) if blinds else None)


def _absent(exposure: Exposure) -> tuple[str, ...]:
    """How well each attack that names absent classes does so; the published claim beside it."""
    naming = [case for case in exposure.cases if case.whole.keys() >= ABSENCE]
    units = "runs" if exposure.about == "cohort" else "clients"
    names = told_apart([case.attack for case in exposure.cases])
    return tuple(_naming(case, names[case.attack], units) for case in naming)


def _naming(case: Case, name: str, units: str) -> str:
    precision, recall, exact = (
        percent(case.whole[name].value.mean)
        for name in ("null_precision", "null_recall", "null_exact")
    )
    sentence = (
        f"Of the classes that {shown(name)} names as absent, {precision} are; it finds "
        f"{recall} of the absent ones, and has them exactly right for {exact} of {units}"
    )
    # Dai et al. (Decaf, arXiv 2405.15316), abstract: "100% accuracy" on absent classes.
    is_decaf = any(finding.cell.settings.startswith("Decaf(") for finding in case.findings)
    if is_decaf and case.whole["null_exact"].value.mean < 1:
        return f"{sentence}: the published 100 % does not hold here."
    return f"{sentence}."


def _choice(exposure: Exposure) -> str:
    name, count = shown(exposure.cases[0].attack), len(exposure.cases)
    which = "the only one that ran" if count == 1 else f"the best of {count} that ran"
    return f"Attack: {name}, {which}."


def _spread(row: Row) -> str:
    if row.value.low is None:
        return "One answer in one run: no interval can be given."
    if row.seeds == 1:
        whom = "people" if row.question in _PERSONAL else "clients"
        return f"One run: the interval covers {whom}, not runs."
    if row.question in _PERSONAL:
        return f"The interval covers those behind {row.targets} targets, and {row.seeds} runs."
    clients = "" if row.targets == 1 else f"{row.targets} clients and "
    return f"The interval covers {clients}{row.seeds} runs."
