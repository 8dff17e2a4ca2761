"""The ground truth of a recording, checked against its transcript and the plan."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from jaxtyping import Int
from torch import Tensor

from overheard.archive.layout import truth_path
from overheard.archive.party_names import NAMES_FILE, read_party_names
from overheard.archive.truth import has_truth, read_truth
from overheard.core.errors import TranscriptError
from overheard.core.facts import Facts
from overheard.core.messages import Aggregate, DistilledSet, MissingReply, Update
from overheard.core.parties import COHORT, SERVER, Party, client, is_shadow_device
from overheard.core.transcript import Transcript
from overheard.core.true_facts.label_counts import LabelCounts
from overheard.core.true_facts.record_owners import (
    OfferedCanaries,
    RecordOwners,
    RecordsDigest,
)
from overheard.core.true_facts.shifts import Shifts
from overheard.core.truth import ByRound, GroundTruth
from overheard.data.listed_records import ListedRecords
from overheard.data.partition.data_partition import DataPartition
from overheard.federation.digest import examples_digest
from overheard.plans.registries import true_fact_kinds

UNRECORDED = "not recorded"
"""How the reasons of recorders begin for a reply that arrived."""

Counts = ByRound[Int[Tensor, " classes"]]

MAX_NAMED = 8
"""Most parties that a message names."""


def read_recorded_truth(
    recording: Path,
    transcript: Transcript,
    classes: int,
    partition: DataPartition,
    *,
    is_external: bool,
    planned_parties: Collection[Party] = (),
    other_parties: Collection[Party] | None = None,
    planned_rounds: int | None = None,
    listed: ListedRecords | None = None,
) -> GroundTruth | None:
    """Read and check `truth.json`; return None if there is no such file.

    A list of candidate records says which of them are members, with or without the file.

    Canaries of clients that the file does not name are set aside, since it is unknown whether
    these clients trained on them.

    Args:
        recording: the folder of the run.
        transcript: the messages of the run.
        classes: the number of classes.
        partition: the plan's partition, with the candidate records of each client.
        is_external: whether the run was not simulated by Overheard; the digest of the canaries
            is then the only evidence that the records are the plan's.
        planned_parties: parties that the run expected, some of which may have no message.
        other_parties: parties of the run that are not in these messages, if the run goes on;
            None = these are all of its messages.
        planned_rounds: the number of rounds of the run, which may have stopped before; None =
            unknown.
        listed: candidate records that the owner of the recording lists; None = no list.

    Raises:
        TranscriptError: if an update has no counts, or an entry is impossible, or is about a
            client or round that is not in the run.

    """
    parties = tuple(sorted({*transcript.parties(), *planned_parties, *(other_parties or ())}))
    if not has_truth(recording):
        if listed is None:
            return None
        return _with_listed(GroundTruth(Facts()), listed, truth_path(recording), parties)
    path = truth_path(recording)
    truth = _with_owners_by_name(read_truth(recording, true_fact_kinds()), parties, recording)
    stated = truth.facts.get(LabelCounts) or LabelCounts({})
    counts = _counts_of_senders(stated, transcript)
    if stated.counts:
        truth = truth.having(LabelCounts(counts))
        _refuse_incomplete_counts(path, transcript, counts, classes)
    last = max((one.round for one in transcript.messages), default=0)
    last = max(last, planned_rounds or 0)
    _refuse_unknown_counts(path, transcript, parties, counts)
    if other_parties is None:
        _refuse_unknown_rounds(path, counts, truth.accuracy, last)
    _refuse_unknown_parties(path, parties, counts, truth)
    if listed is not None:
        return _with_listed(truth, listed, path, parties)
    owners, candidates = truth.facts.get(RecordOwners), partition.candidates
    if candidates is None or owners is None or not owners.members:
        return truth
    stated_digest = truth.facts.get(RecordsDigest)
    if (stated_digest or is_external) and stated_digest != RecordsDigest(
        examples_digest(candidates)
    ):
        raise TranscriptError(
            f"{path}: lists other canaries than the plan draws: use the [data] and the seed "
            "with which `overheard canaries` drew them"
        )
    offered = truth.facts.get(OfferedCanaries) or OfferedCanaries({})
    unclaimed = [
        (set(rows), set(partition.offered.get(party, ())))
        for party, rows in partition.members.items()
    ]
    for party, rows in owners.members.items():
        drawn = (set(rows), set(offered.offered.get(party, ())))
        if drawn not in unclaimed:
            raise TranscriptError(
                f"{path}: the records of {party} are not those that the plan gives to one "
                "client: use the [data] and the seed of the run. For canaries, use the "
                "truth.json that `overheard canaries` wrote, and change nothing in it but "
                "names of clients, in 'members' and in 'offered' alike"
            )
        unclaimed.remove(drawn)
    excluded = frozenset[int]().union(*(held for held, _ in unclaimed))
    return truth.having(replace(owners, excluded=excluded))


def _with_listed(
    truth: GroundTruth, listed: ListedRecords, path: Path, parties: Collection[Party]
) -> GroundTruth:
    """Return the ground truth with the members that the owner of the recording lists."""
    if truth.facts.get(RecordOwners) is not None:
        raise TranscriptError(
            f"{path}: states members of canaries, and the plan lists other records: leave one "
            "out"
        )
    members = _with_recorded_names(listed.members, parties, path.parent)
    unknown = sorted({*members} - {*parties, COHORT})
    if unknown:
        raise TranscriptError(
            f"the list of candidate records names {_some(unknown)} as owners, but the parties "
            f"of the run are {_some(sorted(parties))}: use the names of its clients, or those "
            f"that {path.with_name(NAMES_FILE)} gives them"
        )
    return truth.having(RecordOwners(members))


def _with_owners_by_name(
    truth: GroundTruth, parties: Collection[Party], recording: Path
) -> GroundTruth:
    """Return the truth with canaries of clients that it names as the app does."""
    owners, offered = truth.facts.get(RecordOwners), truth.facts.get(OfferedCanaries)
    if owners is not None:
        members = _with_recorded_names(owners.members, parties, recording)
        truth = truth.having(replace(owners, members=members))
    if offered is not None:
        named = _with_recorded_names(offered.offered, parties, recording)
        truth = truth.having(replace(offered, offered=named))
    return truth


def _with_recorded_names(
    members: Mapping[Party, tuple[int, ...]], parties: Collection[Party], recording: Path
) -> Mapping[Party, tuple[int, ...]]:
    """Return the members by party, where a list may name a client as its app does.

    A name that two clients have names none.
    """
    by_name = defaultdict[str, list[Party]](list)
    if {*members} - {*parties, COHORT}:
        for party, name in read_party_names(recording).items():
            by_name[name].append(party)
    found = defaultdict[Party, tuple[int, ...]](tuple)
    for owner, rows in members.items():
        # A list has "client/3" for 3.
        named = () if owner in parties else by_name.get(owner.removeprefix("client/"), ())
        found[named[0] if len(named) == 1 else owner] += rows
    return {party: tuple(sorted(rows)) for party, rows in found.items()}


def compare_counts(truth: GroundTruth, transcript: Transcript) -> tuple[str, ...]:
    """Return a sentence on replies that report another number of examples than `truth.json`.

    A reply may report steps, or examples without those for validation, so this is a warning.
    """
    fact = truth.facts.get(LabelCounts)
    counts = {} if fact is None else fact.counts
    differing = [
        (message, message.body.examples, int(counts[message.round, message.sender].sum()))
        for message in transcript.messages
        if isinstance(message.body, Update) and (message.round, message.sender) in counts
    ]
    differing = [one for one in differing if one[1] not in {None, one[2]}]
    if not differing:
        return ()
    first, reported, total = differing[0]
    return (
        f"truth.json states {total} examples of {first.sender} in round {first.round}, but its "
        f"reply reports {reported}. The numbers of {len(differing)} replies differ. If they "
        "are numbers of examples, the truth is that of other clients or rounds.",
    )


def compare_labels(truth: GroundTruth, partition: DataPartition) -> tuple[str, ...]:
    """Return a sentence on label counts of a simulated run that its partition does not give.

    Args:
        truth: the ground truth of the recording.
        partition: the partition of the run. A client with another name than there is left out.

    """
    number_of = {client(number): number for number in range(len(partition.rows[0]))}
    differing, labels = list[str](), truth.facts.get(LabelCounts)
    for (number, party), stated in ({} if labels is None else labels.counts).items():
        if party in number_of:
            # The rows of the last round are those of all later ones.
            rows = partition.rows[min(number, len(partition.rows) - 1)][number_of[party]]
            counts = partition.pool.labels[rows].bincount(minlength=len(stated))
            if not torch.equal(counts, stated):
                differing.append(f"{party} in round {number}")
    if not differing:
        return ()
    return (
        "truth.json states other label counts than the partition of the plan: "
        f"{len(differing)}, such as those of {differing[0]}",
    )


def _counts_of_senders(stated: LabelCounts, transcript: Transcript) -> Counts:
    """Return the counts without those of no example of clients that sent no update then."""
    sent = {
        (one.round, one.sender) for one in transcript.messages if isinstance(one.body, Update)
    }
    return {key: held for key, held in stated.counts.items() if key in sent or bool(held.any())}


def _refuse_incomplete_counts(
    path: Path, transcript: Transcript, counts: Counts, classes: int
) -> None:
    for (number, party), held in counts.items():
        if len(held) != classes or int(held.min()) < 0 or not bool(held.any()):
            raise TranscriptError(
                f"{path}: round {number}, {party}: {held.tolist()} are not counts of "
                f"{classes} labels: write how many examples of each label it trained on"
            )
    for message in transcript.messages:
        update_key = (message.round, message.sender)
        if (
            isinstance(message.body, Update)
            and not is_shadow_device(message.sender)
            and update_key not in counts
        ):
            raise TranscriptError(
                f"{path}: has no label counts of {message.sender} in round "
                f"{message.round}, in which it sent an update: add them"
            )


def _refuse_unknown_rounds(
    path: Path, counts: Counts, accuracy: Mapping[int, float], last: int
) -> None:
    """Refuse what is stated of a round after the last one of the run."""
    numbers = {number for number, _ in counts} | {*accuracy}
    if unknown := sorted(number for number in numbers if number > last):
        raise TranscriptError(
            f"{path}: states what holds in round {unknown[0]}, but the rounds of the run are 0 "
            f"to {last}: remove the entry, or correct its round"
        )


def _refuse_unknown_counts(
    path: Path, transcript: Transcript, parties: Sequence[Party], counts: Counts
) -> None:
    """Refuse counts of clients that are not in the run, or not in a round.

    A round of which only the global model was recorded may have had any client.
    """
    trained = _trained_by_round(transcript)
    known = sorted({*parties, *(one for found in trained.values() for one in found)})
    for number, party in counts:
        stated = f"{path}: has label counts of {party} in round {number}, but"
        remedy = "remove the entry, or correct its name or round"
        if trained and party not in known:
            raise TranscriptError(
                f"{stated} the parties of the run are {_some(known)}: {remedy}"
            )
        if number in trained and party not in trained[number]:
            raise TranscriptError(
                f"{stated} in that round only {_some(sorted(trained[number]))} sent an update: "
                f"{remedy}"
            )


def _trained_by_round(transcript: Transcript) -> Mapping[int, Collection[Party]]:
    """Return who trained in each round with an update or a cohort, by the messages.

    A client whose update arrived but could not be recorded has trained.
    """
    trained, unrecorded = defaultdict[int, set[Party]](set), defaultdict[int, set[Party]](set)
    for message in transcript.messages:
        body = message.body
        if isinstance(body, Update | DistilledSet) and message.sender != SERVER:
            trained[message.round].add(message.sender)
        elif isinstance(body, Aggregate) and body.cohort:
            trained[message.round].update(body.cohort)
        elif isinstance(body, MissingReply) and body.reason.startswith(UNRECORDED):
            unrecorded[message.round].add(message.sender)
    return {number: parties | unrecorded[number] for number, parties in trained.items()}


def _some(parties: Sequence[Party]) -> str:
    """Return the first of these names, and how many more there are."""
    more = len(parties) - MAX_NAMED
    return ", ".join(parties[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def _refuse_unknown_parties(
    path: Path, parties: tuple[Party, ...], counts: Counts, truth: GroundTruth
) -> None:
    last = max((number for number, _ in counts), default=0)
    shifts = truth.facts.get(Shifts) or Shifts({})
    for party, rounds in shifts.shifts.items():
        if party not in parties or not all(1 <= number <= last for number in rounds):
            raise TranscriptError(
                f"{path}: says that {party} shifts in the rounds {list(rounds)}, but the "
                f"parties of the run are {', '.join(parties)} and its last round is {last}: "
                f"name its clients, and rounds from 1 to {last}"
            )
    holders = {party for party in parties if party != SERVER and not is_shadow_device(party)}
    for fact in truth.facts:
        if unknown := sorted({*fact.clients()} - holders):
            raise TranscriptError(
                f"{path}: {fact.key!r} names {', '.join(unknown)}, but the parties of the run "
                f"are {', '.join(parties)}: use the names of its clients, or those that "
                f"{path.with_name(NAMES_FILE)} gives them. Clients of Flower "
                "are named if the metrics of their replies have partition-id"
            )
