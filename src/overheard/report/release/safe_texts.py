"""Texts of an audit that hold no names and paths, or others in their place.

Only what Overheard itself wrote, or knows, passes. All else may hold names of parties, of files
or of machines: a recording, a plan or an error message brings it.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, final

import tomli_w

from overheard.consistency.proof import Outcome, Reason
from overheard.core import needs
from overheard.core.algorithm.deduced_view import WHY_NO_SUMS
from overheard.core.needs import Need
from overheard.core.parties import Party, is_client
from overheard.findings.document_rows import RecordingRow
from overheard.findings.metadata import MetadataItem
from overheard.findings.refusal_kind import RefusalKind
from overheard.plans.registries import ATTACKS, DATASETS, DEFENSES, MODELS
from overheard.report.evidence.granted_knowledge import KNOWLEDGE, read_tables, texts_in
from overheard.report.metadata_names import METADATA_NAMES

IN_CLEAR = {
    "labels": "messages state how many examples a client has of each class",
    "examples": "messages state numbers of examples",
    "metrics": "messages contain figures of the training",
    "evaluations": "messages contain figures of evaluations",
    "config": "messages contain settings",
    "times": "messages contain times",
    "names": "messages name their senders",
    "texts": "messages contain texts or bytes",
    "unstored": "some replies are not stored",
    "absent": "some replies lack tensors",
    "missing": "some updates are missing",
}
"""What stands for each kind of data in clear text, without figures and names."""

OTHER_NEED = "something that this release does not name"

WITHHELD = "a failure or a doubt, which this release does not name"

UNNAMED_DEFENSE = "a defense that this release does not name"

UNNAMED_PARTY = "a party that this release does not name"

RECORDING: Mapping[Outcome | None, str] = {
    "follows": "The replies of the recording lead to its next broadcasts, with faults or "
    "warnings that this release does not name",
    "cannot tell": "Whether the replies of the recording lead to its next broadcasts cannot be "
    "told",
    "contradicts": "The recording contradicts what it is taken for, which this release does "
    "not describe",
    None: "Overheard failed to check the recording",
}
"""What stands for what the check of a recording found."""

_NUMBER = r"[-+]?(?:[0-9.]+(?:e[-+]?[0-9]+)?|inf)"
_SETTING = rf"\w+=(?:{_NUMBER}|True|False|None)"
_NUMERIC = re.compile(rf"(\w+)\((?:{_SETTING}(?:, {_SETTING})*)?\)")
_PLAIN = re.compile(r"[\w ,;()=.+\-\[\]]{,300}")


@final
class PartyNames:
    """Gives the parties of a recording numbers in place of their names.

    The numbers are in the order of the plan, in which observers are asked first: so two audits
    by one plan have the same numbers for the same observers. In a simulation, names are numbers
    already.
    """

    def __init__(self, *, are_kept: bool) -> None:
        """Begin without names.

        Args:
            are_kept: whether all names stay as they are.

        """
        self._are_kept = are_kept
        self._numbers = dict[str, Party]()

    def rename(self, name: str) -> Party:
        """Return what stands for a party."""
        if self._are_kept or not is_client(Party(name)):
            return Party(name)
        return self._numbers.setdefault(name, Party(f"client/{len(self._numbers) + 1}"))

    def rename_all(self, names: tuple[str, ...]) -> tuple[Party, ...]:
        """Return what stands for each of these parties."""
        return tuple(map(self.rename, names))


@final
class AttackNames:
    """Gives numbers to attacks that are not installed, and to settings with a text.

    A text among the settings may be a path or the name of a column.
    """

    def __init__(self) -> None:
        self._numbers = dict[str, str]()

    def rename(self, name: str) -> str:
        """Return what stands for the full name of an attack."""
        head = re.split(r"[(,]", name, maxsplit=1)[0].strip()
        is_known = head in ATTACKS.plugins()
        if name == "" or (is_known and _PLAIN.fullmatch(name)):
            return name
        stem = f"{head}, settings" if is_known else "unnamed attack"
        return self._numbers.setdefault(name, f"{stem} {len(self._numbers) + 1}")


def safe_defense(settings: str) -> str:
    """Return the settings of a defense if they are those of a known one, and numbers."""
    match = _NUMERIC.fullmatch(settings)
    known = _defense_classes()
    if match and match[1] in known:
        return settings
    name = settings.partition("(")[0]
    return f"{name}(…)" if name in known else UNNAMED_DEFENSE


@cache
def _defense_classes() -> frozenset[str]:
    return frozenset(plugin.__name__ for plugin in DEFENSES.plugins().values())


def safe_switch(text: str, *, is_recorded: bool) -> str:
    """Return who could switch a defense off, unless a recording words it."""
    return UNNAMED_PARTY if is_recorded else text


def safe_missing(missing: tuple[str, ...], kind: RefusalKind) -> tuple[str, ...]:
    """Return why an attack was refused, in words of Overheard's own needs."""
    if kind == "failed":
        return ("a failure whose message this release leaves out",)
    if kind == "contradicted":
        return ("what contradicts is left out of this release",)
    known = {one.description for one in vars(needs).values() if isinstance(one, Need)}
    known |= WHY_NO_SUMS
    return tuple(dict.fromkeys(one if one in known else OTHER_NEED for one in missing))


def safe_in_clear(kind: str) -> MetadataItem | None:
    """Return that data of a kind are sent in clear text; None = the kind is not known."""
    return MetadataItem(kind, IN_CLEAR[kind]) if kind in METADATA_NAMES else None


def safe_recording(row: RecordingRow) -> RecordingRow:
    """Return the outcome of the check of a recording, without names and texts from it."""
    reasons = [one.value for one in Reason]
    reason = row.reason if row.reason in reasons else None
    sentence = RECORDING[row.outcome]
    if row.outcome == "follows" and not row.faults:
        sentence = "The replies of the recording lead to its next broadcasts"
    elif reason is not None:
        sentence += f": {reason}"
    if row.accepted:
        sentence += ". Its owner accepts it nevertheless"
    return row.model_copy(
        update={
            "reason": reason,
            "sentences": (f"{sentence}.",),
            "mend": "",
            "accepted": "stated in the audit" if row.accepted else "",
            "faults": (),
        }
    )


def safe_subject(subject: str, plan: str, clients: int, *, is_recorded: bool) -> str:
    """Return what was audited; of a recording, and of own data or models, not which."""
    tables = read_tables(plan)
    if not is_recorded and _is_built_in(tables):
        return subject
    kind = "a recorded run" if is_recorded else "a simulated federation"
    size = f" with {clients} clients" if clients else ""
    return f"{kind}{size}; its data and its model are left out of this release"


# Any: the values of a TOML document.
def _is_built_in(tables: Mapping[str, Any]) -> bool:
    """Return whether data and model are known plugins with no setting that is a text."""
    data, training = tables.get("data"), tables.get("training")
    if not isinstance(data, Mapping) or not isinstance(training, Mapping):
        return False
    source, model = data.get("source"), training.get("model")
    return (
        isinstance(source, Mapping)
        and isinstance(model, Mapping)
        and not data.get("shifts")
        and source.get("kind") in DATASETS.plugins()
        and model.get("kind") in MODELS.plugins()
        and not any(isinstance(one, str) for key, one in source.items() if key != "kind")
        and not any("/" in str(one) or ":" in str(one) for one in model.values())
    )


def safe_plan(plan: str, names: PartyNames) -> str:
    """Return what a plan says of its threats, its arms and the numbers of its training."""
    tables = read_tables(plan)
    threats, arms, training = (
        [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []
        for value in (tables.get("threats"), tables.get("arms"), [tables.get("training")])
    )
    content: dict[str, object] = {
        "training": {
            key: value
            for one in training
            for key, value in one.items()
            if isinstance(value, bool | int | float)
        },
        "arms": [
            {
                "name": str(one.get("name", "")),
                "defenses": [
                    {"kind": defense["kind"]}
                    for defense in one.get("defenses") or ()
                    if isinstance(defense, Mapping)
                    and defense.get("kind") in DEFENSES.plugins()
                ],
            }
            for one in arms
        ],
        "threats": [_safe_threat(one, names) for one in threats],
    }
    data = tables.get("data")
    users = data.get("people") if isinstance(data, Mapping) else None
    if isinstance(users, Mapping) and isinstance(users.get("share"), float):
        content["data"] = {"people": {"share": users["share"]}}
    return tomli_w.dumps({key: value for key, value in content.items() if value})


# Any: the values of a TOML document.
def _safe_threat(threat: Mapping[str, Any], names: PartyNames) -> dict[str, object]:
    observers, knows = threat.get("observers"), threat.get("knows")
    attacks = threat.get("attacks")
    kinds = [
        one.get("kind") if isinstance(one, Mapping) else one
        for one in (attacks if isinstance(attacks, list) else ())
    ]
    return {
        "observers": [str(names.rename(one)) for one in texts_in(observers)],
        "about": "cohort" if threat.get("about") == "cohort" else "clients",
        "pseudonyms": "round" if threat.get("pseudonyms") == "round" else "run",
        "knows": [
            one for one in (knows if isinstance(knows, list) else ()) if one in KNOWLEDGE
        ],
        "attacks": [{"kind": one} for one in kinds if one in ATTACKS.plugins()],
    }
