"""The findings of an audit without names and without figures of single clients."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

from pydantic import ValidationError

from overheard.core.errors import FindingsError
from overheard.core.parties import COHORT, Party, is_client
from overheard.disk.limits import FINDINGS, JSON_BYTE
from overheard.disk.reading import parse_json, read_small_file
from overheard.findings.document import FindingsDocument
from overheard.findings.document_rows import (
    ClearTextRow,
    DefenseRow,
    FindingRow,
    RefusalRow,
    RunRow,
    SummaryRow,
    VerdictRow,
)
from overheard.findings.privacy.epsilon_rows import EpsilonRow
from overheard.findings.threat_verdict import TargetKind
from overheard.report.evidence.annex_plan import read_threats
from overheard.report.evidence.annex_section import observer_words, question_words, target_words
from overheard.report.release.left_out import LeftOut, ReleaseSettings
from overheard.report.release.safe_texts import (
    WITHHELD,
    AttackNames,
    PartyNames,
    safe_defense,
    safe_in_clear,
    safe_missing,
    safe_plan,
    safe_recording,
    safe_subject,
    safe_switch,
)

SINGLE_CLIENT = "it is about single clients"

MAY_NAME = "it may hold names, paths or figures of single clients"

_Place = tuple[str, tuple[str, ...], str, TargetKind]
"""The arm, observers, question and kind of target of a verdict."""


@final
@dataclass(frozen=True, slots=True)
class ReleasedFindings:
    """Findings that may leave, and what they lack.

    Args:
        document: the findings.
        left_out: what was left out.

    """

    document: FindingsDocument
    left_out: tuple[LeftOut, ...]


def release_findings(
    found: FindingsDocument, claims: Sequence[FindingRow], settings: ReleaseSettings
) -> ReleasedFindings:
    """Return the findings without what may not leave; their verdicts have no sentences yet.

    Every text either comes from Overheard, or was written by the owner to be read (title, names
    of arms and classes, the table `release`); all else is replaced.

    Args:
        found: the findings of an audit.
        claims: its claims about single targets, which stay only if the settings say so.
        settings: what may leave.

    """
    return _Release(found, claims, settings).make()


def read_claims(path: Path) -> tuple[FindingRow, ...]:
    """Read the claims of findings, which `findings.document.read_findings` leaves out.

    Raises:
        FindingsError: if they cannot be read.

    """
    content = read_small_file(path, FindingsError, part=FINDINGS, weight=JSON_BYTE)
    rows = parse_json(content, str(path), FindingsError, part=FINDINGS).get("findings", [])
    try:
        return tuple(FindingRow.model_validate_json(json.dumps(one)) for one in rows)
    except ValidationError as error:
        raise FindingsError(
            f"{path}: has damaged claims: run `overheard audit` again"
        ) from error


@final
class _Release:
    """Makes the findings of a release, part by part."""

    def __init__(
        self, found: FindingsDocument, claims: Sequence[FindingRow], settings: ReleaseSettings
    ) -> None:
        self._document, self._claims, self._settings = found, claims, settings
        self._names = PartyNames(are_kept=settings.with_names or not found.is_recorded)
        self._attacks = AttackNames()
        # First, so that observers are numbered in the order of the plan.
        self._plan = safe_plan(found.plan, self._names)
        self._clients = {
            arm: max((run.clients for run in runs), default=0)
            for arm, runs in _by_arm(found.arms).items()
        }
        self._has_new_names = {
            (frozenset(one.observers), one.about)
            for one in read_threats(found.plan)
            if one.has_new_names
        }

    def make(self) -> ReleasedFindings:
        """Return the findings, and what was left out."""
        found, is_recorded = self._document, self._document.is_recorded
        small = self._small_places()
        clients = max(self._clients.values(), default=0)
        document = found.model_copy(
            update={
                "subject": safe_subject(
                    found.subject, found.plan, clients, is_recorded=is_recorded
                ),
                "recording": None
                if found.recording is None
                else safe_recording(found.recording),
                "arms": tuple(map(self._run, found.arms)),
                "summary": tuple(
                    self._row(one) for one in found.summary if not self._is_small(one)
                ),
                "verdicts": tuple(
                    self._without_figures(one) if _place(one) in small else self._verdict(one)
                    for one in found.verdicts
                ),
                "epsilon": tuple(map(self._epsilon, found.epsilon)),
                # What rules found may name clients, and figures of single ones.
                "doctor": tuple(
                    dict.fromkeys(
                        one.model_copy(update={"what": "", "where": "", "evidence": ""})
                        for one in found.doctor
                    )
                ),
                "findings": tuple(map(self._claim, self._claims))
                if self._settings.with_clients
                else (),
                "refusals": tuple(map(self._refusal, found.refusals)),
                "plan": self._plan,
            }
        )
        return ReleasedFindings(document, tuple(self._left_out(small.values())))

    def _is_small(self, row: SummaryRow) -> bool:
        """Return whether a row is about fewer clients than may be named together."""
        least = self._settings.least_group
        return least > 1 and self._size(row) < least

    def _size(self, row: SummaryRow) -> int:
        """Return how many clients a row is about; 0 = unknown, which counts as too few."""
        clients = self._clients.get(row.arm, 0)
        if row.about == "cohort":
            return clients - sum(map(is_client, map(Party, row.observers)))
        if (frozenset(row.observers), row.about) in self._has_new_names:
            # Targets are pseudonyms, of which a client has one in each round.
            return min(clients, row.targets)
        return min(clients, row.targets) if clients else row.targets

    def _small_places(self) -> Mapping[_Place, VerdictRow]:
        """Return the verdicts that rest on too few clients, by their place."""
        rows = defaultdict[_Place, list[SummaryRow]](list)
        for row in self._document.summary:
            rows[_place(row)].append(row)
        small = {}
        for verdict in self._document.verdicts:
            own = rows[_place(verdict)]
            longest = max((len(row.rounds) for row in own), default=0)
            if any(len(row.rounds) == longest and self._is_small(row) for row in own):
                small[_place(verdict)] = verdict
        return small

    def _run(self, run: RunRow) -> RunRow:
        in_clear = [safe_in_clear(one.kind) for one in run.in_clear]
        return run.model_copy(
            update={
                "defenses": tuple(map(self._defense, run.defenses)),
                "in_clear": tuple(
                    ClearTextRow(kind=one.kind, text=one.text) for one in in_clear if one
                ),
                # Their reasons may quote what a client sent.
                "lost_replies": (),
                # The smallest group names clients.
                "sums": None if run.sums is None else run.sums.model_copy(update={"group": ()}),
            }
        )

    def _defense(self, row: DefenseRow) -> DefenseRow:
        settings = safe_defense(row.settings)
        is_own = settings != row.settings or self._document.is_recorded
        return row.model_copy(
            update={
                "settings": settings,
                "switched_off_by": safe_switch(row.switched_off_by, is_recorded=is_own),
                "promise": "left out of this release" if is_own else row.promise,
            }
        )

    def _row(self, row: SummaryRow) -> SummaryRow:
        return row.model_copy(
            update={
                "observers": self._names.rename_all(row.observers),
                "attack": self._attacks.rename(row.attack),
            }
        )

    def _verdict(self, row: VerdictRow) -> VerdictRow:
        why = row.why if row.why != row.withheld else WITHHELD
        return row.model_copy(
            update={
                "sentence": "",
                "observers": self._names.rename_all(row.observers),
                "attack": self._attacks.rename(row.attack),
                "shared_gains": {
                    self._attacks.rename(name): gain for name, gain in row.shared_gains.items()
                },
                "why": why if row.why else "",
                "withheld": WITHHELD if row.withheld else "",
            }
        )

    def _without_figures(self, row: VerdictRow) -> VerdictRow:
        """Return a verdict that says that the true one, and its figures, are left out."""
        why = f"figures on fewer than {self._settings.least_group} clients are left out"
        return VerdictRow(
            arm=row.arm,
            observers=self._names.rename_all(row.observers),
            question=row.question,
            about=row.about,
            score="",
            sentence="",
            verdict="not enough to judge",
            attack="",
            p_value=None,
            smallest_p_value=None,
            gain=None,
            margins={},
            is_below_margin=False,
            why=why,
            shared_gains={},
            withheld=why,
        )

    def _epsilon(self, row: EpsilonRow) -> EpsilonRow:
        is_own = safe_defense(row.defense) != row.defense or self._document.is_recorded
        measured = row.measured
        if measured is not None:
            attack = self._attacks.rename(measured.attack)
            measured = measured.model_copy(update={"attack": attack})
        return row.model_copy(
            update={
                "defense": safe_defense(row.defense),
                "observers": self._names.rename_all(row.observers),
                "switched_off_by": safe_switch(row.switched_off_by, is_recorded=is_own),
                "doubt": WITHHELD if row.doubt and is_own else row.doubt,
                "measured": measured,
                "by_client": None,
            }
        )

    def _refusal(self, row: RefusalRow) -> RefusalRow:
        missing = safe_missing(row.missing, row.kind)
        return row.model_copy(update={**self._safe_cell(row), "missing": missing})

    def _claim(self, row: FindingRow) -> FindingRow:
        names = {
            "targets": self._names.rename_all(row.targets),
            "candidates": row.candidates if self._settings.with_names else (),
            "true_user": row.true_user if self._settings.with_names else None,
        }
        doubt = WITHHELD if row.doubt else row.doubt
        return row.model_copy(update={**self._safe_cell(row), **names, "doubt": doubt})

    def _safe_cell(self, row: RefusalRow | FindingRow) -> Mapping[str, object]:
        """Return who observes whom by which attack, without names and settings."""
        attack = self._attacks.rename(row.attack)
        return {
            "observers": self._names.rename_all(row.observers),
            "attack": attack,
            "settings": "",
            "part": "",
            "label": attack,
            "target": self._names.rename(row.target),
        }

    def _left_out(self, small: Iterable[VerdictRow]) -> Iterable[LeftOut]:
        """Yield what was left out, each thing once."""
        arms = defaultdict[str, list[str]](list)
        for one in small:
            arms[self._describe(one)].append(f"“{one.arm}” ({one.verdict})")
        least = self._settings.least_group
        why = f"fewer than {least} clients, or an unknown number, are behind it"
        for what, names in arms.items():
            yield LeftOut(f"{what}; arms, with the verdict: {', '.join(names)}", why)
        if not self._settings.with_clients:
            yield LeftOut(
                "what attacks claim of each client, what is true of it, and all charts, tables "
                "and sentences that show it",
                f"{SINGLE_CLIENT}; --with-clients adds the claims to findings.json",
            )
        if self._document.is_recorded and not self._settings.with_names:
            yield LeftOut(
                "names of parties",
                "they may name persons and organizations; observers have numbers instead",
            )
        if any(run.in_clear for run in self._document.arms):
            yield LeftOut("figures and texts that are sent in clear", MAY_NAME)
        if any(run.lost_replies for run in self._document.arms):
            yield LeftOut("whose messages are missing or not recorded, and why", MAY_NAME)
        if any(one.missing for one in self._document.refusals):
            yield LeftOut("reasons of refusals in other words than Overheard's own", MAY_NAME)
        if self._document.recording is not None:
            yield LeftOut("faults of messages, and how to mend them", MAY_NAME)
        yield LeftOut(
            "the plan, but not its threats, the kinds of its defenses and the numbers of its "
            "training",
            "it may hold paths and names",
        )
        yield LeftOut(
            "messages, updates, ground truth, claims of attacks and caches",
            "they are as sensitive as the data of the clients",
        )

    def _describe(self, row: VerdictRow) -> str:
        """Return the observers, whom a result is about, and its question."""
        observers = observer_words(self._names.rename_all(row.observers))
        about = target_words(row.about, row.observers)
        return f"{observers}, about {about}: {question_words(row.question)}"


def _place(row: SummaryRow | VerdictRow) -> _Place:
    return row.arm, tuple(sorted(row.observers)), row.question, row.about


def _by_arm(runs: Iterable[RunRow]) -> Mapping[str, Sequence[RunRow]]:
    by_arm = defaultdict[str, list[RunRow]](list)
    for run in runs:
        if not run.is_control:
            by_arm[run.arm].append(run)
    return by_arm


def client_names(found: FindingsDocument, claims: Iterable[FindingRow]) -> frozenset[str]:
    """Return the names of clients in findings, without their kind."""
    groups = [
        *(one.observers for one in found.verdicts),
        *((*one.observers, one.target) for one in found.refusals),
        *((*one.observers, one.target, *one.targets) for one in claims),
    ]
    parties = {Party(one) for group in groups for one in group}
    clients = [one for one in parties if one != COHORT and is_client(one)]
    return frozenset(one.rpartition("/")[2] for one in clients)
