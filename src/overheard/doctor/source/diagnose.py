"""Applies all rules on source code to the files of an app."""

from functools import cache
from pathlib import Path

from overheard.core.plugin_registry import discover_plugins
from overheard.doctor.criticism import SEVERITIES, Criticism, Diagnosis, DoctorRule, Unseen
from overheard.doctor.source.code import AppCode, Place
from overheard.doctor.source.files import read_app_files
from overheard.doctor.source.privacy import PrivateApp
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

PRIVATE = DoctorRule(
    "differential-privacy",
    "theoretical",
    "no differential privacy found",
    "If the app is meant to be private, name the folder with the code that adds the noise.",
    "every rule on source code needs it",
)
"""What is told of an app without a known mechanism."""


@cache
def source_rules() -> tuple[SourceRule, ...]:
    """Return all rules on source code, by name."""
    found: dict[str, type[SourceRule]] = discover_plugins(PACKAGE, SourceRule)
    return tuple(one() for one in found.values())


def diagnose_source(path: Path) -> Diagnosis:
    """Apply every rule on source code to an app: a Python file, or a folder with some.

    The code is parsed and never run.

    Raises:
        PlanError: if there is no Python file, or they are too many or too large.

    """
    files = read_app_files(path)
    app = PrivateApp(AppCode(files))
    unseen = [Unseen(READ, one) for one in files.unread]
    if not app.is_private:
        count = len(files.files)
        unseen.append(
            Unseen(
                PRIVATE,
                f"No differential privacy found: nothing in {count} "
                f"{'file' if count == 1 else 'files'} clips and adds noise by a library that "
                "is known here, or by code that names it so.",
            )
        )
        return Diagnosis((), (), tuple(unseen))
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
    order = list(SEVERITIES)
    criticisms.sort(key=lambda one: order.index(one.rule.severity))
    return Diagnosis(tuple(dict.fromkeys(criticisms)), tuple(passed), tuple(unseen))


def _evidence(places: tuple[Place, ...]) -> str:
    return "; ".join(f"{one}: {one.code}" for one in places)
