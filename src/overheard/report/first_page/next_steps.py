"""What to do next, from the arms that the audit compared."""

from collections.abc import Sequence

from overheard.findings.names import make_printable
from overheard.findings.threat_results import ArmResult, ThreatResult, find_undefended_arm
from overheard.plans.registries import DEFENSES
from overheard.report.defense_effects import accuracy_cost, effect_words

STOPS = ("no leak above margin", "nothing to read")
"""Verdicts that show that a defense stops a leak."""


def next_steps(arm_results: Sequence[ArmResult]) -> tuple[str, ...]:
    """Return what this audit says about each leak, and what it leaves to be tried.

    Only arms of the audit are recommended, each with what it costs. A defense under which no
    attack could run is not said to stop the leak.
    """
    reference = find_undefended_arm(arm_results) or (arm_results[0] if arm_results else None)
    if reference is None:
        return ()
    leaks = [one for one in reference.threat_results if one.verdict == "leaks"]
    others = [arm for arm in arm_results if arm is not reference]
    steps = [_leak_step(leak, reference, others) for leak in leaks]
    open_titles = [
        one.title
        for one in reference.threat_results
        if one.verdict in ("inconclusive", "not enough to judge")
    ]
    if open_titles:
        steps.append(
            f"Not settled in the arm “{make_printable(reference.name)}”: "
            f"{'; '.join(open_titles)}. More seeds or clients narrow the intervals: four times "
            "as many make them half as wide."
        )
    if any(one.verdict == "unchecked" for one in reference.threat_results):
        steps.append(
            "The claims could not be checked. To learn how accurate they are, record the "
            "ground truth with the run, or simulate a federation like this one."
        )
    return (*steps, *_untried(arm_results, has_leaks=bool(leaks)))


def _leak_step(leak: ThreatResult, reference: ArmResult, others: Sequence[ArmResult]) -> str:
    stopping, hiding, reducing, useless = [], [], [], []
    for arm in others:
        same = [one for one in arm.threat_results if one.title == leak.title]
        if not same:
            continue
        (after,) = same
        name = f"“{make_printable(arm.name)}” ({accuracy_cost(arm, reference)})"
        if after.verdict in STOPS:
            stopping.append(name)
        elif after.verdict == "unmeasured":
            hiding.append(name)
        elif effect_words(after, leak) in ("helps", "reduces the leak but does not stop it"):
            reducing.append(name)
        else:
            useless.append(f"“{make_printable(arm.name)}”")
    parts = [
        f"{words} {_listed(names)}"
        for words, names in (
            ("it is shown to stop under", stopping),
            ("no attack of this audit can run under", hiding),
            ("it is less under", reducing),
            ("there is no clear difference under", useless),
        )
        if names
    ]
    if not parts:
        parts = ["no defense was tried in this audit"]
    return f"{leak.title}. This leaks; {'; '.join(parts)}."


def _untried(arm_results: Sequence[ArmResult], *, has_leaks: bool) -> tuple[str, ...]:
    """Name the defenses that no arm has, if something leaks."""
    if not has_leaks:
        return ()
    settings = " ".join(
        one.settings for arm in arm_results for run in arm.runs for one in run.defenses
    )
    missing = [
        name
        for name, plugin in sorted(DEFENSES.plugins().items())
        if f"{plugin.__name__}(" not in settings
    ]
    if not missing:
        return ()
    return (
        f"Defenses not tried in this audit: {', '.join(map(make_printable, missing))}. Add one "
        "as an arm of the plan and repeat the audit.",
    )


def _listed(names: Sequence[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last
