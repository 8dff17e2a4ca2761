"""Describes a stored run: its contents, who can read what, and its metadata."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from overheard.archive.layout import (
    count_committed_rounds,
    end_path,
    path_exists,
    round_folder,
    transcript_folder,
)
from overheard.archive.manifest import DefenseRecord, Manifest, is_complete, read_manifest
from overheard.archive.reader import open_transcript
from overheard.archive.requested_rounds import count_requested_rounds
from overheard.archive.run_end import has_ended
from overheard.consistency.check import check_recording
from overheard.consistency.statement import state_step
from overheard.core.errors import TranscriptError
from overheard.core.failures import describe_internal_error
from overheard.core.messages import (
    Aggregate,
    Broadcast,
    DistilledSet,
    Evaluation,
    Message,
    MessageBody,
    MissingReply,
    UnstoredMessage,
    Update,
)
from overheard.core.parties import COHORT, SERVER, Party, is_client
from overheard.core.task import OUTPUTS_OF
from overheard.core.transcript import Transcript
from overheard.findings.lost_replies import (
    describe_lost_replies,
    describe_unlisted_replies,
    find_lost_replies,
)
from overheard.findings.metadata import describe_metadata, list_names
from overheard.findings.names import shorten
from overheard.participation.participation import find_participation
from overheard.participation.sums_reading import TOO_LARGE, describe_sums, read_sums
from overheard.report.run_overview import ObserverRow, RunOverview

COLUMNS: dict[str, type[MessageBody]] = {
    "broadcasts": Broadcast,
    "updates": Update,
    "aggregates": Aggregate,
    "distilled sets": DistilledSet,
    "evaluations": Evaluation,
    "missing updates": MissingReply,
    "unstored": UnstoredMessage,
}

EXAMPLE_COUNTS = "example counts"

MAX_ROWS = 20
"""Observers that get a row each; of more, those with equal counts share a row."""

MAX_LENGTH = 300
"""Longest text shown, in characters: it may come from anybody."""


def show(folder: Path) -> RunOverview:
    """Describe a stored run, what each party can read, and the metadata that is sent.

    Args:
        folder: the folder of the run; it contains `transcript/`.

    Raises:
        TranscriptError: if the transcript is missing, damaged, or has no round although its run
            does not go on.

    """
    manifest = read_manifest(folder)
    _check_rounds(folder)
    # Made first: the check then frees its memory.
    sentences = _check_sentences(manifest, folder)
    transcript = open_transcript(folder)
    messages = transcript.messages
    columns, rows, total = _table(messages)
    metadata = describe_metadata(messages)
    return RunOverview(
        # What needs no attack is said first.
        (
            *(("told", one.text) for one in metadata if one.kind == "labels"),
            *_facts(manifest, folder, transcript, sentences),
        ),
        columns,
        rows,
        total,
        (
            *_reader_sentences(messages),
            *_sum_sentences(messages),
            *_network_sentences(messages),
        ),
        metadata,
    )


def _check_rounds(folder: Path) -> None:
    """Refuse a recording without rounds, unless its first one is being recorded."""
    if count_committed_rounds(folder):
        return
    transcript = transcript_folder(folder)
    is_begun = path_exists(round_folder(transcript, 0))
    if path_exists(end_path(transcript)) or not is_begun:
        raise TranscriptError(
            f"{transcript} has no round: copy the whole transcript again. If its run goes on, "
            "wait for the first round; if it ended before that, record again"
        )


def _facts(
    manifest: Manifest, folder: Path, transcript: Transcript, check: Sequence[str]
) -> Iterator[tuple[str, str]]:
    yield "model", shorten(manifest.model, MAX_LENGTH) or "not recorded"
    task = manifest.task
    yield (
        "classes" if task is None else OUTPUTS_OF[task.kind],
        "not recorded"
        if task is None
        else f"{task.outputs} ({list_names(task.class_names, 10)})",
    )
    yield "recipe", "not recorded" if manifest.recipe is None else repr(manifest.recipe)
    if manifest.algorithm:
        yield "algorithm", shorten(manifest.algorithm, MAX_LENGTH)
    yield from _defenses(manifest)
    yield "rounds", _rounds(manifest, folder, transcript)
    yield "run by", shorten(manifest.framework, MAX_LENGTH)
    if manifest.left_out:
        yield (
            "left out",
            f"{len(manifest.left_out):,} tensors that were sent but are not in the transcript: "
            f"{list_names(manifest.left_out)}",
        )
    for number, sentence in enumerate(check):
        yield "" if number else "check", shorten(sentence, 2 * MAX_LENGTH)
    made = f"overheard {manifest.overheard}, torch {manifest.torch}"
    yield "made with", shorten(made, MAX_LENGTH)


def _rounds(manifest: Manifest, folder: Path, transcript: Transcript) -> str:
    planned = manifest.rounds
    if planned is None:
        recorded = count_committed_rounds(folder)
        end = "" if has_ended(folder) else ", and no mark of the end of the run"
        return f"{recorded:,} recorded; the planned number is not recorded{end}"
    if is_complete(folder):
        return f"{planned:,}, complete"
    asked = count_requested_rounds(transcript, manifest.parties).rounds
    return f"{planned:,}, INCOMPLETE: {asked:,} of {planned:,} rounds recorded"


def _check_sentences(manifest: Manifest, folder: Path) -> tuple[str, ...]:
    """Return whether the replies lead to the next broadcasts as they are recorded."""
    try:
        return check_recording(folder, state_step(manifest)).sentences
    except TranscriptError as error:
        return (f"not made: {error}",)
    except Exception as error:
        return (f"{describe_internal_error('the check of the recording', error)}.",)


def _defenses(manifest: Manifest) -> Iterator[tuple[str, str]]:
    defenses = manifest.defenses
    if not defenses:
        yield "defenses", "none" if manifest.are_defenses_known else "none recorded"
    for number, one in enumerate(defenses[:MAX_ROWS]):
        text = (
            f"{shorten(one.settings, MAX_LENGTH)}, enforced at the {one.enforced_at}, can be "
            f"switched off by {shorten(one.switched_off_by, MAX_LENGTH)}{_mechanism(one)}"
        )
        yield "" if number else "defenses", text
    if len(defenses) > MAX_ROWS:
        yield "", f"and {len(defenses) - MAX_ROWS:,} more"
    if defenses:
        yield "", "As stated by the recording; Overheard has not verified it."


def _mechanism(defense: DefenseRecord) -> str:
    stated = defense.mechanism
    if stated is None:
        return ""
    doubt = stated.flaw or stated.unproven
    but = f", but {shorten(doubt, MAX_LENGTH)}" if doubt else ""
    return (
        f"; states noise of {stated.noise_multiplier:.4g} x clip {stated.clip:.4g} for one "
        f"{stated.unit}, added at the {stated.noised_at}{but}"
    )


@dataclass(slots=True)
class _MessageCounts:
    """Counts of the messages of each kind that a party can read."""

    kinds: Counter[type[MessageBody]] = field(default_factory=Counter)
    sizes: int = 0

    def add(self, body: MessageBody) -> None:
        self.kinds[type(body)] += 1
        self.sizes += isinstance(body, Update) and body.examples is not None

    def row(self) -> tuple[int, ...]:
        return (*(self.kinds[kind] for kind in COLUMNS.values()), self.sizes)


def _table(
    messages: Sequence[Message],
) -> tuple[tuple[str, ...], tuple[ObserverRow, ...], ObserverRow]:
    """Return the columns, a row per observer, and the totals, in one pass over the messages."""
    all_messages, seen = _MessageCounts(), defaultdict[Party, _MessageCounts](_MessageCounts)
    for message in messages:
        all_messages.add(message.body)
        for party in message.readers | {message.sender}:
            seen[party].add(message.body)
    seen.pop(COHORT, None)
    rows = {party: seen[party].row() for party in sorted(seen)}
    totals = all_messages.row()
    # Kinds that do not occur get no column.
    columns = [index for index, count in enumerate(totals) if count or index < 2]
    observers = tuple(
        ObserverRow(name, tuple(_range_text(low[index], high[index]) for index in columns))
        for name, low, high in _group_parties(rows)
    )
    total = ObserverRow("total", tuple(f"{totals[index]:,}" for index in columns))
    return tuple((*COLUMNS, EXAMPLE_COUNTS)[index] for index in columns), observers, total


def _range_text(low: int, high: int) -> str:
    return f"{low:,}" if low == high else f"{low:,}-{high:,}"


CountRow = tuple[int, ...]


def _group_parties(rows: dict[Party, CountRow]) -> Iterator[tuple[str, CountRow, CountRow]]:
    """Yield each group of parties with the least and the most that its members can read."""
    if len(rows) <= MAX_ROWS:
        yield from ((party, row, row) for party, row in rows.items())
        return
    by_row = defaultdict[CountRow, list[Party]](list)
    for party, row in rows.items():
        by_row[row].append(party)
    # The server first, then the largest groups.
    groups = sorted(by_row.items(), key=lambda group: (SERVER not in group[1], -len(group[1])))
    for row, names in groups[: MAX_ROWS - 1]:
        more = len(names) - 1
        yield f"{names[0]}{f' and {more:,} more' if more else ''}", row, row
    rest = groups[MAX_ROWS - 1 :]
    if rest:
        columns = list(zip(*(row for row, _ in rest), strict=True))
        count = sum(len(names) for _, names in rest)
        yield f"{count:,} others", tuple(map(min, columns)), tuple(map(max, columns))


def _reader_sentences(messages: Sequence[Message]) -> Iterator[str]:
    kinds: dict[str, type[MessageBody]] = {"updates": Update, "distilled sets": DistilledSet}
    is_empty = True
    for name, kind in kinds.items():
        senders = defaultdict[Party, set[Party]](set)
        for message in messages:
            if isinstance(message.body, kind) and message.sender != SERVER:
                for reader in message.readers - {message.sender, COHORT}:
                    senders[reader].add(message.sender)
        by_count = defaultdict[int, list[Party]](list)
        for reader in sorted(senders):
            by_count[len(senders[reader])].append(reader)
        for others, readers in sorted(by_count.items(), reverse=True)[:MAX_ROWS]:
            is_empty = False
            verb = "reads" if len(readers) == 1 else "read"
            parties = "other party" if others == 1 else "other parties"
            yield (
                f"{list_names(readers, 3)} {verb} the individual {name} of {others:,} "
                f"{parties}."
            )
    unstored = list(_unstored_sentences(messages))
    if is_empty and not unstored:
        yield "No party can read another party's individual updates."
    yield from unstored
    yield from describe_lost_replies(find_lost_replies(messages))
    yield from describe_unlisted_replies(messages)
    yield from _aggregate_sentences(messages)


def _unstored_sentences(messages: Sequence[Message]) -> Iterator[str]:
    """Yield who reads replies that are not stored, which no attack can thus try."""
    senders = defaultdict[frozenset[Party], set[Party]](set)
    kinds = defaultdict[frozenset[Party], set[str]](set)
    for message in messages:
        body = message.body
        if isinstance(body, UnstoredMessage) and body.kind != "masked":
            readers = message.readers - {message.sender, COHORT}
            if message.sender != SERVER and readers:
                senders[readers].add(message.sender)
                kinds[readers].add(body.kind)
    for readers, others in senders.items():
        verb = "reads" if len(readers) == 1 else "read"
        yield (
            f"{list_names(sorted(readers), 3)} {verb} individual replies of {len(others):,} "
            f"{'other party' if len(others) == 1 else 'other parties'} that are not stored "
            f"({', '.join(sorted(kinds[readers]))}): no attack on them was tried."
        )


def _aggregate_sentences(messages: Sequence[Message]) -> Iterator[str]:
    """Yield who reads the mean update of a round."""
    rounds = defaultdict[Party, list[int]](list)
    for message in messages:
        if isinstance(message.body, Aggregate):
            for reader in message.readers - {COHORT}:
                rounds[reader].append(len(message.body.cohort))
    for reader, sizes in sorted(rounds.items()):
        yield (
            f"{reader} reads the mean update of {_range_text(min(sizes), max(sizes))} parties "
            f"in {len(sizes):,} {'round' if len(sizes) == 1 else 'rounds'}."
        )


def _sum_sentences(messages: Sequence[Message]) -> Iterator[str]:
    """Yield what the sums of cohorts reveal of single clients."""
    participation = find_participation(messages)
    if participation is None:
        return
    reading = read_sums(participation)
    yield from (TOO_LARGE,) if reading is None else describe_sums(reading)


def _network_sentences(messages: Sequence[Message]) -> Iterator[str]:
    """Yield what whoever carries the encrypted messages sees of those of clients."""
    sent = [
        message
        for message in messages
        if is_client(message.sender) and not isinstance(message.body, MissingReply)
    ]
    if sent:
        clock = "when" if any(message.times for message in sent) else "in which rounds"
        yield (
            "The network, which carries the encrypted messages, sees who sends how many bytes, "
            f"and {clock}."
        )
