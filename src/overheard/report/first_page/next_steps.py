"""What to do next, from the arms that the audit compared."""

from collections.abc import Iterator, Mapping, Sequence

from overheard.findings.audit import Audit
from overheard.findings.names import make_printable
from overheard.findings.number_format import format_percent
from overheard.findings.threat_results import ArmResult, ThreatResult
from overheard.plans.registries import DEFENSES
from overheard.report.defense_effects import effect_words, utility_words
from overheard.report.evidence.granted_knowledge import read_tables
from overheard.report.first_page.answers import listed, reference_arm

STOPS = ("no leak above margin", "nothing to read")
"""Verdicts that show that a defense stops a leak."""

CHECK_CLAIMS = (
    "Ask a few clients for their true figures, where these may be used for this. Have "
    "engineers compare them with what the attacks state, or simulate such a federation."
)

NAME_DEFENSES = (
    "Have engineers state which defenses were in force: the recording does not tell, and only "
    "then can attacks allow for them."
)

STAYS = "Until one is shown to help, plan as if the leak stays."

NONE_TRIED = "no defense was tried in this audit"

SEND_LESS = (
    "Have engineers leave out what is sent in clear and not needed: it is read without any "
    "attack."
)


def next_steps(audit: Audit) -> tuple[str, ...]:
    """Return what this audit says about each leak, and what it leaves to be tried.

    Only arms of the audit are recommended, each with what it costs. A defense under which no
    attack could run is not said to stop the leak.
    """
    arm_results = audit.arm_results
    reference = reference_arm(arm_results)
    if reference is None:
        return ()
    results = reference.threat_results
    leaks = [one for one in results if one.verdict == "leaks"]
    others = [arm for arm in arm_results if arm is not reference]
    steps = [" ".join(_leak_steps(leak, reference, others)) for leak in leaks]
    open_titles = [
        one.title for one in results if one.verdict in ("inconclusive", "not enough to judge")
    ]
    if open_titles:
        steps.append(f"Settle what is open ({'; '.join(open_titles)}): {_settle(audit)}")
    if any(one.verdict == "unchecked" for one in results):
        steps.append(CHECK_CLAIMS)
    if not all(run.are_defenses_known for run in reference.runs):
        steps.append(NAME_DEFENSES)
    if reference.runs[0].in_clear:
        steps.append(SEND_LESS)
    return (
        *steps,
        *_unsimulated(audit),
        *_untried(arm_results, has_leaks=bool(leaks)),
    )


def _settle(audit: Audit) -> str:
    if audit.is_recorded:
        return (
            "this recording is one run, so more seeds of the plan change nothing. Have "
            "engineers record a run with more clients or rounds, or simulate such a federation "
            "with several seeds."
        )
    return (
        "repeat the audit with more seeds or clients. Four times as many make the ranges half "
        "as wide."
    )


def _leak_steps(
    leak: ThreatResult, reference: ArmResult, others: Sequence[ArmResult]
) -> Iterator[str]:
    """Yield a sentence on the leak with the arms that do best, and one on each other group."""
    about = "each client" if leak.target_kind == "clients" else "the cohort"
    groups: dict[str, list[str]] = {
        "have engineers use {}: the leak is shown to stop.": [],
        f"have engineers use {{}}: no attack of this audit on {about} can run then, which is "
        "no proof.": [],
        "have engineers use {}: the leak is smaller, and not shown to remain.": [],
        "have engineers use {}: the leak is smaller, but remains.": [],
        "do not rely on {}: the leak was not shown to be smaller.": [],
    }
    stopped, hidden, unshown, reduced, unchanged = groups.values()
    for arm in others:
        same = [one for one in arm.threat_results if one.title == leak.title]
        if not same:
            continue
        (after,) = same
        text = f"“{make_printable(arm.name)}” ({_accuracies(arm, reference)})"
        if after.verdict in STOPS:
            stopped.append(text)
        elif after.verdict == "unmeasured" and not after.judgement.withheld:
            hidden.append(text)
        elif not after.attack_results:
            # Where Overheard failed, it does not follow that no attack can run.
            unchanged.append(f"“{make_printable(arm.name)}”")
        elif (effect := effect_words(after, leak)) == "helps":
            unshown.append(text)
        elif effect == "reduces the leak but does not stop it":
            reduced.append(text)
        else:
            unchanged.append(f"“{make_printable(arm.name)}”")
    sentences = [words.format(listed(names)) for words, names in groups.items() if names]
    sentences[1:] = [text.replace("have engineers use", "or use") for text in sentences[1:]]
    if not stopped and not hidden and not unshown and not reduced:
        tried = NONE_TRIED
        if unchanged:
            tried = f"none of the defenses tried ({listed(unchanged)}) was shown to help"
        sentences = [f"{tried}. {STAYS}"]
    yield f"Against the leak “{leak.title}”: {sentences[0]}"
    yield from (f"{text[0].upper()}{text[1:]}" for text in sentences[1:])


def _accuracies(arm: ArmResult, reference: ArmResult) -> str:
    if arm.accuracy is None or reference.accuracy is None:
        return f"its cost in {arm.utility} was not measured"
    after, before = utility_words(arm), utility_words(reference)
    if after != before:
        return f"the model {after}, {format_percent(reference.accuracy)} without"
    if arm.utility == "accuracy":
        return f"the model stays {format_percent(arm.accuracy)} accurate"
    return f"the model still {after}"


def _unsimulated(audit: Audit) -> Iterator[str]:
    """Point to the defenses of the plan, if a recording was audited in their place."""
    if not audit.is_recorded:
        return
    names = [f"“{make_printable(one)}”" for one in _defended_arms(audit.plan)]
    if names:
        yield (
            f"Have the defenses of the plan compared: {listed(names)}. For engineers: the same "
            "command without --transcript simulates them."
        )


def _defended_arms(plan: str) -> Iterator[str]:
    """Yield the names of the arms with defenses; none if the text is no plan."""
    arms = read_tables(plan).get("arms")
    for arm in arms if isinstance(arms, list) else []:
        if isinstance(arm, Mapping) and arm.get("defenses"):
            yield str(arm.get("name", ""))


def _untried(arm_results: Sequence[ArmResult], *, has_leaks: bool) -> tuple[str, ...]:
    """Propose a defense that no arm has, if something leaks; first one that hides updates."""
    if not has_leaks:
        return ()
    settings = " ".join(
        one.settings for arm in arm_results for run in arm.runs for one in run.defenses
    )
    plugins = {
        make_printable(name): plugin
        for name, plugin in sorted(DEFENSES.plugins().items())
        if f"{plugin.__name__}(" not in settings
    }
    if not plugins:
        return ()
    hiding = [name for name, plugin in plugins.items() if plugin.masks_updates]
    first = f": first {listed(hiding)}, which hides single updates" if hiding else ""
    return (
        f"Have engineers add a defense that was not tried, and repeat the audit{first}. "
        "For engineers: “overheard list defenses” names all defenses.",
    )
