"""Sentences on what each threat's best attack infers, compared with an uninformed guess."""

from overheard.auditing.exposures import arms
from overheard.core.seeds import Seed
from overheard.drawing.pages import Pages
from overheard.findings.exposures import Case, Exposure, Verdict
from overheard.findings.figures import NO_FIGURE
from overheard.findings.finding import Audit
from overheard.findings.names import all_others, called, possessive, shown, together
from overheard.findings.row import Row
from overheard.report.claims import claim_words
from overheard.report.question_pages import pages_of

BADGES: dict[Verdict, str] = {
    "leaks": "Leaks",
    "unclear": "Not significant",
    "silent": "No better than guessing",
    "unjudged": "Cannot be judged",
    "unchecked": "Claimed, not checked",
    "unmeasured": "Not measured",
}


def headlines(audit: Audit, seed: Seed) -> tuple[str, ...]:
    """Return one sentence per arm and threat, for the terminal."""
    return tuple(
        f"{shown(arm.name)}: {exposure_words(exposure)[0]}"
        for arm in arms(audit, seed)
        for exposure in arm.exposures
    )


def exposure_words(exposure: Exposure) -> tuple[str, ...]:
    """Describe the result of a threat in a few sentences."""
    pages = pages_of(exposure.question)
    if not exposure.cases:
        return claim_words(exposure) if exposure.claims else (_unmeasured(exposure, pages),)
    case = exposure.cases[0]
    return (
        _headline(exposure, case, pages),
        *pages.sentences(exposure),
        f"{_choice(exposure)} {_spread(case.row, pages)}",
    )


def _unmeasured(exposure: Exposure, pages: Pages) -> str:
    caveat = "Not measured does not mean that there is no leak."
    if exposure.rows:
        return f"{pages.unmeasured(exposure)} {caveat}"
    whom = all_others(exposure.observers) if exposure.about == "cohort" else "each client"
    missing = dict.fromkeys(need for refusal in exposure.refusals for need in refusal.missing)
    return (
        f"What {together(exposure.observers)} can learn about {whom} was not measured: no "
        f"attack could run. Missing: {' and '.join(map(shown, missing))}. {caveat}"
    )


def _headline(exposure: Exposure, case: Case, pages: Pages) -> str:
    row = pages.told_row(case)
    observers, count = together(exposure.observers), len(row.rounds)
    reading = pages.reading(row, _whose(exposure, case))
    leads: dict[Verdict, str] = {
        "leaks": reading.well,
        "unclear": f"was not significantly better than guessing {reading.what}: the best "
        f"attack is {reading.badly}",
        "silent": f"was no better than guessing {reading.what}: the best attack is "
        f"{reading.badly}",
        "unjudged": f"{reading.well}, with too few results to judge",
    }
    measure = pages.question.measure(row.score)
    details = (
        "no guess to compare with"
        if row.blind is None
        else f"guessing: {measure.tell(row.blind)}"
    )
    span = measure.span(row.value)
    if span != NO_FIGURE:
        details += f"; 95 % interval {span}"
    rounds = f"from {count} round{'' if count == 1 else 's'}"
    subject = f"{observers[0].upper()}{observers[1:]}"
    return f"{subject} {leads[exposure.verdict]} ({details}), {rounds}."


def _whose(exposure: Exposure, case: Case) -> str:
    # For questions about time, only the targets whose distribution shifted.
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


def _choice(exposure: Exposure) -> str:
    name, count = shown(exposure.cases[0].label), len(exposure.cases)
    which = "the only one that ran" if count == 1 else f"the best of {count} that ran"
    return f"Attack: {name}, {which}."


def _spread(row: Row, pages: Pages) -> str:
    if row.value.low is None:
        return "One result from one run: no interval can be given."
    is_about_people = pages.question.is_about_people
    if row.seeds == 1:
        units = "users" if is_about_people else "clients"
        return f"One run: the interval covers {units}, not runs."
    if is_about_people:
        return (
            f"The interval covers the users behind {row.targets} targets and {row.seeds} runs."
        )
    clients = "" if row.targets == 1 else f"{row.targets} clients and "
    return f"The interval covers {clients}{row.seeds} runs."
