"""Applies all rules on source code to the files of an app."""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from overheard.core.plugin_registry import discover_plugins
from overheard.doctor.criticism import (
    Criticism,
    Diagnosis,
    DoctorRule,
    Unseen,
    sort_by_severity,
)
from overheard.doctor.source.code import AppCode, Place
from overheard.doctor.source.files import read_app_files
from overheard.doctor.source.nvflare_job import PRIVATE_FILTERS
from overheard.doctor.source.privacy import Kind, PrivateApp
from overheard.doctor.source.rule import CodeFault, SourceRule

PACKAGE = "overheard.doctor.source.rules"
"""Where the rules are found."""

READ = DoctorRule(
    "source-is-read",
    "theoretical",
    "source code that was not read",
    "Mend the file, or name the folder of the app alone.",
    "every rule on source code needs it",
)
"""What is told of files that no rule could look at."""

PROTECTIONS: Mapping[Kind, str] = {
    "dp_sgd": "noise in a client's training steps is to protect single records of its data, "
    "from the server too.",
    "local": "noise on a client's update is to protect the client's data, from the server too.",
    "central": "noise added by the server is to protect clients from those who see the "
    "released models; it proves nothing against the server itself.",
    "own noise": "the app adds noise by code of its own, and no library accounts for it.",
}
"""What each kind of noise is for."""


@cache
def source_rules() -> tuple[SourceRule, ...]:
    """Return all rules on source code, by name."""
    found: dict[str, type[SourceRule]] = discover_plugins(PACKAGE, SourceRule)
    return tuple(one() for one in found.values())


def diagnose_source(path: Path) -> Diagnosis:
    """Apply every rule on source code to an app: a Python file, or a folder with some.

    The code is parsed and never run.

    Raises:
        PlanError: if no Python file can be read, or they are too many or too large.

    """
    return diagnose_app(PrivateApp(AppCode(read_app_files(path))))


def diagnose_app(app: PrivateApp) -> Diagnosis:
    """Apply every rule on source code to an app that was read."""
    unseen = [Unseen(READ, one) for one in app.code.unread]
    if not app.is_private:
        return Diagnosis((), (), tuple(unseen), (_no_privacy(app),))
    criticisms, passed = list[Criticism](), list[DoctorRule]()
    for rule in source_rules():
        if not rule.concerns(app):
            continue
        seen = tuple(rule.examine(app))
        faults = [one for one in seen if isinstance(one, CodeFault)]
        hidden = [one.why for one in seen if not isinstance(one, CodeFault)]
        criticisms += [
            Criticism(rule.about, one.what, str(one.places[0]), _evidence(one.places))
            for one in faults
        ]
        unseen += [Unseen(rule.about, why) for why in dict.fromkeys(hidden)]
        passed += [] if seen else [rule.about]
    found = sort_by_severity(criticisms)
    return Diagnosis(found, tuple(passed), tuple(unseen), tuple(_protections(app)))


def _no_privacy(app: PrivateApp) -> str:
    filters = () if app.code.job is None else app.code.job.filters
    noisy = {one.shown: one.place for one in filters if one.name in PRIVATE_FILTERS}
    if noisy:
        named = ", ".join(f"{name} ({place})" for name, place in noisy.items())
        return (
            f"The job's settings name {named}, to add noise for differential privacy. These "
            "rules judge source code, and no settings: record a run, and give its recording to "
            "`overheard doctor`."
        )
    count = len(app.code.files)
    files = f"{count} {'file' if count == 1 else 'files'}"
    truncated = [site for site in app.code.calls if site.last == "PercentilePrivacy"]
    why = (
        f" PercentilePrivacy ({app.places(truncated[0].call)[0]}) leaves out and cuts values, "
        "and adds no noise."
        if truncated
        else ""
    )
    return (
        f"No differential privacy found: nothing in {files} clips and adds noise by a library "
        f"that is known here, or by code that names it so.{why}"
    )


def _protections(app: PrivateApp) -> Iterator[str]:
    """Yield who is protected from whom, by the kinds of noise in the app."""
    for kind, words in PROTECTIONS.items():
        found = [one for one in app.mechanisms if one.kind == kind]
        if found:
            yield f"{app.places(found[0].node)[0]}: {words}"


def _evidence(places: tuple[Place, ...]) -> str:
    return "; ".join(f"{one}: {one.code}" for one in places)
