"""The first page: what leaks to whom, how sure this is, what to do, and what was not tested."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import final

from overheard.core.parties import NETWORK, RELEASE, SERVER, Party, is_client, joining_round
from overheard.epsilon.epsilon_results import EpsilonResult
from overheard.epsilon.table import epsilon_sentences, epsilon_summaries
from overheard.findings.audit import Audit
from overheard.findings.finding import Refusal
from overheard.findings.lost_replies import describe_lost_replies
from overheard.findings.metadata import MetadataItem
from overheard.findings.names import make_printable, name_observers
from overheard.findings.threat_results import ArmResult, ThreatResult
from overheard.plans.registries import DEFENSES, questions
from overheard.report.doctor_section import alarm_sentences, criticism_rows
from overheard.report.evidence.granted_knowledge import attacker_knowledge
from overheard.report.evidence.standards import untested_threats
from overheard.report.first_page.answers import answer_sentences
from overheard.report.first_page.gain_bar import BAR_DETAILS, gain_bar
from overheard.report.first_page.matrix import Matrix, make_matrices
from overheard.report.first_page.next_steps import next_steps
from overheard.report.metadata_names import METADATA_NAMES
from overheard.report.page_parts import PageParts
from overheard.report.page_registry import pages_of
from overheard.report.refusals import failure_sentences, why_refused
from overheard.report.verdict_sentences import false_leak_sentences, is_size_settled


def limitation_sentences(audit: Audit) -> tuple[str, ...]:
    """Return the limitations of the results, one per sentence."""
    updates = sum(run.answers for run in audit.arms)
    missing = sum(run.missing for run in audit.arms)
    unrecorded = sum(run.unrecorded for run in audit.arms)
    unattacked = [
        make_printable(arm.name) for arm in audit.arm_results if not arm.threat_results
    ]
    seeds = len({run.seed for run in audit.arms})
    unchecked = not all(run.has_truth for run in audit.arms)
    return (
        *(
            [
                "No claim was checked, since the ground truth is unknown: claims are shown "
                "beside uninformed guesses and may be wrong."
            ]
            if unchecked
            else []
        ),
        *failure_sentences(audit.refusals),
        "Some attacks could not run: something that they need was missing, or they failed. Not "
        "measured does not mean that there is no leak."
        if audit.refusals
        else "No planned attack had to be left out.",
        *(f"No attack ran on the arm {name}." for name in unattacked),
        *(
            ["There was one run per arm: another run may give other results."]
            if seeds == 1 and not unchecked
            else []
        ),
        *(
            [f"{missing} of {missing + updates} updates of clients are missing."]
            if missing
            else []
        ),
        *(
            [
                f"{unrecorded} replies arrived and are not recorded, so no attack was tried on "
                "them."
            ]
            if unrecorded
            else []
        ),
        *(
            sentence
            for run in (audit.arms if audit.is_recorded else ())
            for sentence in describe_lost_replies(run.lost_replies)
        ),
        "A stronger attack than those tried may reveal more."
        if unchecked
        else "Of several attacks the best is shown. Tests and intervals allow for this choice. "
        "A stronger attack than those tried may reveal more.",
        *false_leak_sentences(audit.arm_results),
        "An audit cannot prove that there is no risk.",
    )


NO_METADATA = "Besides weights, nothing is sent."

MISTRUST = (
    "Do not count a promise of differential privacy that does not hold as a safeguard. Have "
    "engineers mend the cause that is stated above, choose noise that gives the promised "
    "epsilon, and repeat the audit."
)

RELEASE_NAMES = {
    "controller": "Answers for the data",
    "contact": "Contact",
    "purpose": "Purpose of the model",
    "people": "Whose data",
    "recipients": "Who gets the model",
    "retention": "How long data are stored",
}


@final
@dataclass(frozen=True, slots=True)
class FirstPage:
    """The contents of the first page; all texts are printable.

    Args:
        alarms: sentences on critical faults in the differential privacy of arms.
        recording: what the check of the recording found; () = runs were simulated, or the
            recording is what it is taken for.
        broken_claims: sentences on promises of differential privacy that do not hold.
        answers: what leaks to whom, in sentences.
        matrices: the verdicts, by question and observers, arm by arm.
        in_clear: what travels besides weights: each kind, with the arms in which this is so
            and a text for each; () = nothing.
        epsilons: sentences on promised, recomputed and measured epsilon; () = no noise.
        legend: what the words of the matrix mean.
        steps: what to do next.
        untested: what was not asked, not run or never tested.
        limits: how far the results can be trusted.
        assessment: what of this belongs into an impact assessment.
        file_rows: pairs of name and text that identify this audit.

    """

    alarms: tuple[str, ...]
    recording: tuple[str, ...]
    broken_claims: tuple[str, ...]
    answers: tuple[str, ...]
    matrices: tuple[Matrix, ...]
    in_clear: tuple[tuple[str, tuple[str, ...]], ...]
    epsilons: tuple[str, ...]
    legend: tuple[str, ...]
    steps: tuple[str, ...]
    untested: tuple[str, ...]
    limits: tuple[str, ...]
    assessment: tuple[str, ...]
    file_rows: tuple[tuple[str, str], ...]


def make_first_page(
    audit: Audit, epsilons: Sequence[EpsilonResult], digest: str, parts: PageParts
) -> FirstPage:
    """Return the first page of an audit.

    Args:
        audit: the audit.
        epsilons: its claims of epsilon.
        digest: the SHA-256 of `findings.json`; "" = not stated.
        parts: makes the parts; one that fails is empty.

    """
    part = parts.make
    broken, arm_results = epsilon_sentences(epsilons), audit.arm_results
    recording = audit.recording
    found = () if recording is None else tuple(map(make_printable, recording.sentences))
    is_odd = recording is not None and not recording.is_proved
    alarms = alarm_sentences(criticism_rows(audit))
    return FirstPage(
        alarms,
        found if is_odd else (),
        broken,
        part("what leaks, in sentences", lambda: answer_sentences(audit)),
        part("verdicts by question and arm", lambda: make_matrices(arm_results)),
        _in_clear(arm_results),
        epsilon_summaries(epsilons),
        part("words of the verdicts", lambda: legend_sentences(arm_results)),
        (
            *((MISTRUST,) if broken or alarms else ()),
            *part("what to do next", lambda: next_steps(audit)),
        ),
        part("what was not tested", lambda: untested_sentences(audit)),
        (
            *part("how far to trust this", lambda: limitation_sentences(audit)),
            *(() if is_odd else found),
        ),
        tuple(_assessment(audit, has_broken=bool(broken or alarms))),
        _file_rows(audit, digest),
    )


def _attacks(audit: Audit) -> str:
    """Return the names of the attacks that ran, by question."""
    by_question: dict[str, dict[str, None]] = {}
    for one in audit.findings:
        by_question.setdefault(one.cell.question, {})[one.cell.part or one.cell.attack] = None
    return "; ".join(
        f"{question.replace('_', ' ')}: {', '.join(sorted(names))}"
        for question, names in by_question.items()
    )


def _assessment(audit: Audit, *, has_broken: bool) -> Iterator[str]:
    """Yield what of the first page belongs into an impact assessment."""
    verdicts = {one.verdict for arm in audit.arm_results for one in arm.threat_results}
    yield (
        "Into the assessment belong: what leaks and to whom, with its size, and which defenses "
        "helped, with their cost. So do what was not tested, the limits above, and the facts "
        "below."
    )
    if has_broken:
        yield "Enter the promise of differential privacy that does not hold as no safeguard."
    if "unchecked" in verdicts:
        yield (
            "Enter what nobody could check as an open risk without a size, and by when it will "
            "be checked."
        )
    if not audit.is_recorded:
        yield (
            "State that this was a simulation. It tells about another federation only as far "
            "as its data and training are alike."
        )


def _defenses(audit: Audit) -> str:
    """Return the defenses of all arms, each with what it does.

    A recording only states which ones were in force, so what they do is left out.
    """
    summaries = {
        plugin.__name__: (plugin.__doc__ or "").partition("\n")[0].rstrip(".")
        for plugin in DEFENSES.plugins().values()
    }
    names = dict.fromkeys(
        one.settings.partition("(")[0] for run in audit.arms for one in run.defenses
    )
    return "; ".join(
        f"{name} ({summaries[name]})" if summaries.get(name) and not audit.is_recorded else name
        for name in names
    )


def _in_clear(arm_results: Sequence[ArmResult]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return what the first run of each arm sends besides weights; equal texts once."""
    arms_by_item: dict[MetadataItem, list[str]] = {}
    for arm in arm_results:
        for item in arm.runs[0].in_clear:
            arms_by_item.setdefault(item, []).append(make_printable(arm.name))
    by_kind: dict[str, list[str]] = {}
    for item, arms in arms_by_item.items():
        text = make_printable(item.text)
        by_kind.setdefault(item.kind, []).append(
            text if len(arms) == len(arm_results) else f"{', '.join(arms)}: {text}"
        )
    return tuple(
        (METADATA_NAMES.get(kind, make_printable(kind)), tuple(texts))
        for kind, texts in by_kind.items()
    )


def _file_rows(audit: Audit, digest: str) -> tuple[tuple[str, str], ...]:
    versions = ", ".join(f"{name} {number}" for name, number in audit.versions.items())
    seeds = sorted({run.seed for run in audit.arms})
    rows = [
        ("Title", audit.title),
        ("Day of the audit", audit.made_on),
        *((name, audit.release.get(key, "")) for key, name in RELEASE_NAMES.items()),
        ("What was audited", audit.subject),
        ("What was read of the data", " ".join((*audit.data, *audit.data_warnings))),
        ("Attacks tried", _attacks(audit)),
        ("Known to attackers", "; ".join(attacker_knowledge(audit.plan))),
        (
            "Defenses stated by the recording" if audit.is_recorded else "Defenses tried",
            _defenses(audit),
        ),
        ("Seeds", ", ".join(map(str, seeds))),
        ("Versions", versions),
        ("SHA-256 of findings.json", digest),
    ]
    return tuple((name, make_printable(text)) for name, text in rows if text)


NAMES_MARGIN = ("inconclusive", "no leak above margin", "nothing to read")
"""Verdicts beside which the matrix names the margin."""


def legend_sentences(arm_results: Sequence[ArmResult]) -> tuple[str, ...]:
    """Return a sentence on each word that the matrix of these arms uses."""
    results = [one for arm in arm_results for one in arm.threat_results]
    return (*_words_on_arms(arm_results, results), *_words_on_verdicts(results))


def _words_on_arms(
    arm_results: Sequence[ArmResult], results: Sequence[ThreatResult]
) -> Iterator[str]:
    if len(arm_results) > 1:
        yield "Each column is an arm: a variant of the federation with its own defenses."
    if any(one.target_kind == "cohort" for one in results):
        yield "The cohort is all clients together."
    insiders = dict.fromkeys(
        one.observers for one in results if one.observers and SERVER not in one.observers
    )
    yield from _words_on_external(
        dict.fromkeys(one for row in results for one in row.observers)
    )
    for observers in insiders:
        clients = tuple(filter(is_client, observers))
        if not clients:
            continue
        name = name_observers(clients)
        yield (
            f"{name[0].upper()}{name[1:]} takes part like the others. It is an example of one "
            "that tries to learn about them from what it receives."
        )


def _words_on_external(observers: Iterable[Party]) -> Iterator[str]:
    """Yield what each of these observers has that is no party of the run."""
    for one in observers:
        if one == RELEASE:
            yield "A reader of the final model has that model and nothing else of the run."
        elif one == NETWORK:
            yield (
                "The network sees who sends how many bytes to whom and when. The messages are "
                "encrypted, so it reads none."
            )
        elif (joined := joining_round(one)) is not None:
            yield (
                f"A client that joins in round {joined} reads the models from that round on "
                "and sends nothing."
            )


def _words_on_verdicts(results: Sequence[ThreatResult]) -> Iterator[str]:
    measured = [one for one in results if one.attack_results]
    leaks = [one for one in measured if one.verdict == "leaks"]
    if measured:
        yield (
            "Each field has the verdict, the result of the best attack on average, and that of "
            "guessing. Guessing never sees the run. At most it knows what such data look like "
            "in general. The gain is the difference."
        )
    if any(gain_bar(one) for one in measured):
        yield BAR_DETAILS
    for question in dict.fromkeys(one.question for one in measured):
        if intro := pages_of(question).intro():
            yield intro
    if leaks:
        yield (
            "“Leaks”: what the attack states depends on the data more than by chance, and was "
            "better than guessing. “By chance” says in how many of 1,000 audits this would "
            "come up if nothing leaked."
        )
    small = [one for one in leaks if one.judgement.is_below_margin]
    others = [one for one in leaks if not one.judgement.is_below_margin]
    if any(not is_size_settled(one.judgement.least_gain) for one in others):
        yield "“Size unsure”: in further audits the attack may be no better than guessing."
    has_tick = any(bar.margin is not None for one in measured if (bar := gain_bar(one)))
    if has_tick or small or any(one.verdict in NAMES_MARGIN for one in measured):
        yield "The margin is the smallest gain that the plan takes seriously."
    if any(one.shared_gain for one in measured):
        yield (
            "“Guessing from labels alone” knows which labels are more frequent among training "
            "records, and nothing else."
        )


def untested_sentences(audit: Audit) -> tuple[str, ...]:
    """Return questions and observers that were not asked, refused attacks, and limits."""
    return (
        *map(make_printable, audit.data_warnings),
        *_untested_questions(audit.arm_results),
        *_untested_observers(audit.arm_results),
        *_one_sided(audit.arm_results),
        *_refused(audit.arm_results),
        f"Overheard cannot test: {'; '.join(_never_tested())}.",
        *_auxiliary_caveat(audit),
    )


def _never_tested() -> tuple[str, ...]:
    return tuple(_lower_first(one.threat) for one in untested_threats())


def _untested_questions(arm_results: Sequence[ArmResult]) -> tuple[str, ...]:
    asked = {one.question for arm in arm_results for one in arm.threat_results}
    missing = [
        _lower_first(pages_of(name).plain_question)
        for name in questions()
        if name not in asked and pages_of(name).plain_question
    ]
    return (f"Questions not asked: {'; '.join(missing)}.",) if missing else ()


def _untested_observers(arm_results: Sequence[ArmResult]) -> tuple[str, ...]:
    asked = {one.observers for arm in arm_results for one in arm.threat_results}
    missing = []
    if (SERVER,) not in asked:
        missing.append("the server")
    if not any(_takes_part(observers) for observers in asked):
        missing.append("a client that takes part")
    if not any(len(observers) > 1 for observers in asked):
        missing.append("parties that share what they see")
    if not any(RELEASE in observers for observers in asked):
        missing.append("readers of the final model")
    if not any(NETWORK in observers for observers in asked):
        missing.append("the network")
    return (f"Observers not asked about: {', '.join(missing)}.",) if missing else ()


def _takes_part(observers: Sequence[Party]) -> bool:
    """Return whether clients observe, without the server."""
    return SERVER not in observers and any(map(is_client, observers))


def _one_sided(arm_results: Sequence[ArmResult]) -> tuple[str, ...]:
    """State which questions were asked about the server alone, or about clients alone."""
    asked: dict[bool, set[str]] = {True: set(), False: set()}
    for arm in arm_results:
        for one in arm.threat_results:
            if SERVER in one.observers or _takes_part(one.observers):
                asked[SERVER in one.observers].add(one.question)
    if not all(asked.values()):
        return ()
    return tuple(
        f"Asked about {who} only: {'; '.join(map(_in_words, sorted(alone)))}."
        for who, alone in (
            ("the server", asked[True] - asked[False]),
            ("clients that take part", asked[False] - asked[True]),
        )
        if alone
    )


def _in_words(question: str) -> str:
    words = _lower_first(pages_of(question).plain_question)
    return words or make_printable(question).replace("_", " ")


def _refused(arm_results: Sequence[ArmResult]) -> tuple[str, ...]:
    """State which arms and observers had attacks that could not run, and what was missing."""
    places: dict[str, list[Refusal]] = {}
    for arm in arm_results:
        for one in arm.threat_results:
            place = f"{name_observers(one.observers)} under “{make_printable(arm.name)}”"
            places.setdefault(place, []).extend(one.refusals)
    by_reason: dict[str, list[str]] = {}
    for place, refusals in places.items():
        if refusals:
            why = why_refused(refusals, "What was missing")
            by_reason.setdefault(why, []).append(place)
    return tuple(
        f"Some attacks could not run: by {'; by '.join(found)}. {why} This does not show "
        "protection."
        for why, found in by_reason.items()
    )


def _auxiliary_caveat(audit: Audit) -> tuple[str, ...]:
    if audit.is_auxiliary_separate:
        return ()
    return (
        "Attackers were given examples of their own from the plan's data. If some of these are "
        "a client's own examples, the attacks look stronger than they are: Overheard cannot "
        "check this for a recording.",
    )


def _lower_first(text: str) -> str:
    return f"{text[:1].lower()}{text[1:]}"
