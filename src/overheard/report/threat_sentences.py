"""Sentences on what each threat's best attack infers, compared with an uninformed guess."""

from overheard.core.failures import describe_internal_error
from overheard.core.parties import RELEASE, is_external
from overheard.drawing.claim_tables import UNCHECKED
from overheard.drawing.coverage import (
    LEVEL_TEXT,
    doubt_sentences,
    learning_curve_sentences,
)
from overheard.drawing.question_pages import QuestionPages
from overheard.findings.finding import targets_of
from overheard.findings.names import (
    make_printable,
    name_observers,
    name_other_clients,
    name_targets,
    possessive,
)
from overheard.findings.number_format import NO_NUMBER, format_percent
from overheard.findings.score_row import ScoreRow
from overheard.findings.threat_results import AttackResult, ThreatResult
from overheard.findings.unchecked_claims import (
    attacks_with_claims,
    count_guess_exclusions,
    select_claims,
)
from overheard.report.page_registry import pages_of
from overheard.report.refusals import why_refused
from overheard.report.verdict_sentences import (
    evidence_sentences,
    guess_words,
    lead_phrase,
)


def threat_sentences(threat_result: ThreatResult) -> tuple[str, ...]:
    """Describe the result of a threat in a few sentences."""
    try:
        return _result_sentences(threat_result)
    except Exception as error:
        what = f"the sentence on {make_printable(threat_result.question)}"
        return (f"{describe_internal_error(what, error)}.",)


def _result_sentences(threat_result: ThreatResult) -> tuple[str, ...]:
    pages = pages_of(threat_result.question)
    if not threat_result.attack_results:
        if threat_result.verdict == "unchecked" and not threat_result.unchecked_claims:
            return (_released_claims_sentence(threat_result),)
        if threat_result.verdict == "not enough to judge":
            return (_untold_sentence(threat_result),)
        return (
            unchecked_claim_sentences(threat_result)
            if threat_result.unchecked_claims
            else (_unmeasured_sentence(threat_result, pages),)
        )
    attack_result = threat_result.attack_results[0]
    # A release has no claims, which the details are about.
    has_claims = any(one.claimed.numbers or one.scores for one in attack_result.findings)
    return (
        _headline_sentence(threat_result, attack_result, pages),
        *(pages.detail_sentences(threat_result) if has_claims else ()),
        *evidence_sentences(threat_result, pages),
        f"{_attack_sentence(threat_result)} "
        f"{_interval_sentence(attack_result.headline_row, pages)}",
    )


def _unmeasured_sentence(threat_result: ThreatResult, pages: QuestionPages) -> str:
    caveat = "Not measured does not mean that there is no leak."
    withheld = make_printable(threat_result.judgement.withheld)
    if threat_result.attacks_run and not withheld:
        return f"{pages.unmeasured_sentence(threat_result)} {caveat}"
    whom = (
        name_other_clients(threat_result.observers)
        if threat_result.target_kind == "cohort"
        else "each client"
    )
    why = f"no attack could run. {why_refused(threat_result.refusals)}"
    if threat_result.attacks_run:
        why = f"{withheld}."
    return (
        f"What {name_observers(threat_result.observers)} can learn about {whom} was not "
        f"measured: {why} {caveat}"
    )


def _released_claims_sentence(threat_result: ThreatResult) -> str:
    """Return that claims were made, which a release does not contain."""
    observers = name_observers(threat_result.observers)
    what = make_printable(threat_result.question).replace("_", " ")
    return (
        f"{observers[0].upper()}{observers[1:]} makes claims ({what}). {UNCHECKED}: how "
        "accurate they are is unknown, which does not mean that there is no leak."
    )


def _untold_sentence(threat_result: ThreatResult) -> str:
    """Return that a release leaves out the figures of a result."""
    return (
        f"{threat_result.title}. This is not told here: "
        f"{make_printable(threat_result.judgement.why)}."
    )


def _headline_sentence(
    threat_result: ThreatResult, attack_result: AttackResult, pages: QuestionPages
) -> str:
    row = attack_result.headline_row
    observers = name_observers(threat_result.observers)
    reading = pages.headline_statement(row, _target_possessive(threat_result, attack_result))
    lead = lead_phrase(threat_result, reading)
    measure = pages.question.measure(row.score)
    details = guess_words(threat_result, pages) or "no guess to compare with"
    span = measure.format_interval(row.value)
    if span != NO_NUMBER:
        details = f"95 % interval {span}; {details}"
    subject = f"{observers[0].upper()}{observers[1:]}"
    return f"{subject} {lead} ({details}), {_source_words(threat_result, attack_result)}."


def _source_words(threat_result: ThreatResult, attack_result: AttackResult) -> str:
    """Return from how much of the run the observers claim."""
    rounds = set(attack_result.headline_row.rounds)
    if all(map(is_external, threat_result.observers)):
        # They did not observe all rounds of the run.
        rounds = {number for one in attack_result.findings for number in one.sent_rounds}
    if threat_result.observers == (RELEASE,):
        return "from this model alone"
    return f"from {len(rounds)} round{'' if len(rounds) == 1 else 's'}"


def _target_possessive(threat_result: ThreatResult, attack_result: AttackResult) -> str:
    # For questions about time, only the targets whose distribution shifted.
    targets = targets_of(
        finding
        for finding in attack_result.findings
        if finding.claimed.timeline is None or finding.true_since is not None
    )
    if threat_result.target_kind == "cohort":
        return possessive(name_other_clients(threat_result.observers))
    if len(targets) > 1:
        return "each client's"
    (only,) = targets
    return possessive(name_targets((only,), threat_result.observers))


def _attack_sentence(threat_result: ThreatResult) -> str:
    name, count = (
        make_printable(threat_result.attack_results[0].label),
        len(threat_result.attack_results),
    )
    which = "the only one that ran" if count == 1 else f"the best of {count} that ran"
    return f"Attack: {name}, {which}."


def _interval_sentence(row: ScoreRow, pages: QuestionPages) -> str:
    if row.value.low is None:
        return "One result from one run: no interval can be given."
    units = "users" if pages.question.is_about_users else "clients"
    if row.value.basis == "runs":
        return f"The interval is over {row.seeds} runs, and covers further runs of this kind."
    if row.value.basis == "these runs":
        which = "this one run" if row.seeds == 1 else f"these {row.seeds} runs"
        return f"The interval is over the {units} of {which}, and says nothing of other runs."
    return f"The interval rests on {row.targets} targets and {row.seeds} runs."


def unchecked_claim_sentences(threat_result: ThreatResult) -> tuple[str, ...]:
    """Describe the claims of these observers, and state that they were not checked."""
    attacks = attacks_with_claims(threat_result)
    targets = targets_of(threat_result.unchecked_claims)
    whom = (
        name_other_clients(threat_result.observers)
        if threat_result.target_kind == "cohort"
        else "each client"
    )
    if threat_result.target_kind == "clients":
        whom = f"{len(targets)} client{'' if len(targets) == 1 else 's'}"
    observers = name_observers(threat_result.observers)
    what = make_printable(threat_result.question).replace("_", " ")
    rounds = len(threat_result.unchecked_claims[0].cell.rounds)
    return (
        f"{observers[0].upper()}{observers[1:]} makes claims about {whom} ({what}) from "
        f"{rounds} round{'' if rounds == 1 else 's'}. {UNCHECKED}: how accurate they are is "
        "unknown, which does not mean that there is no leak.",
        *exclusion_sentences(threat_result),
        f"Attacks: {', '.join(make_printable(threat_result.labels[one]) for one in attacks)}.",
    )


def exclusion_sentences(threat_result: ThreatResult) -> tuple[str, ...]:
    """State how many intervals of each attack exclude an uninformed guess, and doubts."""
    return tuple(
        sentence
        for attack in attacks_with_claims(threat_result)
        for sentence in (
            *_interval_words(threat_result, attack),
            *doubt_sentences(select_claims(threat_result, attack)),
            *learning_curve_sentences(select_claims(threat_result, attack)),
        )
    )


def _interval_words(threat_result: ThreatResult, attack: str) -> tuple[str, ...]:
    """State how many of an attack's intervals exclude an uninformed guess."""
    excluded = count_guess_exclusions(select_claims(threat_result, attack))
    if excluded is None:
        return ()
    return (
        f"{format_percent(excluded.count / excluded.intervals)} of the {excluded.intervals} "
        "intervals "
        f"of {make_printable(threat_result.labels[attack])} (level {LEVEL_TEXT}) exclude the "
        "uninformed guess "
        f"({make_printable(excluded.guess)}); if the guess were true, about 10 % would.",
    )
