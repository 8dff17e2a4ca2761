"""The truth beside a recording, as far as it can be one of that run."""

from dataclasses import replace
from pathlib import Path

from overheard.archive.layout import truth_path
from overheard.archive.truth import has_truth, read_truth
from overheard.core.errors import TranscriptError
from overheard.core.messages import Update
from overheard.core.parties import SERVER, is_shadow
from overheard.core.transcript import Transcript
from overheard.core.truth import GroundTruth
from overheard.data.partition.deal import Deal
from overheard.federation.digest import examples_digest


def recorded_truth(
    recording: Path, transcript: Transcript, classes: int, dealt: Deal, *, is_elsewhere: bool
) -> GroundTruth | None:
    """What `truth.json` says of the run; None where it was kept back.

    Canaries of clients whom it does not name are set aside: they may have learned from theirs
    or not.

    Args:
        recording: the folder of the run.
        transcript: what was said in it.
        classes: how many labels there are.
        dealt: whom the plan gives which records.
        is_elsewhere: whether the run was not simulated here, so that nothing else tells that
            the records are the plan's.

    Raises:
        TranscriptError: if it lacks who sent something, or tells what cannot be.

    """
    if not has_truth(recording):
        return None
    truth, place = read_truth(recording), truth_path(recording)
    if truth.are_counts_told:
        _refuse_incomplete_counts(place, transcript, truth, classes)
    _refuse_strangers(place, transcript, truth)
    asked = dealt.candidates
    if asked is None or not truth.members:
        return truth
    if (truth.canaries or is_elsewhere) and truth.canaries != examples_digest(asked):
        raise TranscriptError(
            f"{place}: is about other canaries than the plan draws: take the [data] and the "
            "seed by which `overheard canaries` drew them"
        )
    hands = [set(own) for own in dealt.members.values()]
    for who, places in truth.members.items():
        if set(places) not in hands:
            raise TranscriptError(
                f"{place}: {who} has records that the plan gives to nobody, or not to one "
                "client and all of them: take the [data] and the seed of the run and, of "
                "canaries, the truth.json that `overheard canaries` wrote, in which nothing "
                "may be changed but names of clients"
            )
        hands.remove(set(places))
    return replace(truth, set_aside=frozenset[int]().union(*hands))


def _refuse_incomplete_counts(
    place: Path, transcript: Transcript, truth: GroundTruth, classes: int
) -> None:
    for (number, who), counts in truth.counts.items():
        if len(counts) != classes or int(counts.min()) < 0 or not bool(counts.any()):
            raise TranscriptError(
                f"{place}: round {number}, {who}: {counts.tolist()} are no "
                f"counts of {classes} labels: write how many examples of each it trained on"
            )
    for message in transcript.messages:
        answer = (message.round, message.sender)
        if (
            isinstance(message.body, Update)
            and not is_shadow(message.sender)
            and answer not in truth.counts
        ):
            raise TranscriptError(
                f"{place}: has nothing on {message.sender} in round "
                f"{message.round}, which sent an update then: add its label counts"
            )


def _refuse_strangers(place: Path, transcript: Transcript, truth: GroundTruth) -> None:
    parties, last = transcript.parties(), max((n for n, _ in truth.counts), default=0)
    for who, rounds in truth.shifts.items():
        if who not in parties or not all(1 <= number <= last for number in rounds):
            raise TranscriptError(
                f"{place}: {who} shifts in the rounds {list(rounds)}, but the run is of "
                f"{', '.join(parties)}, and its rounds end with {last}: name its clients, and "
                "rounds from 1 on"
            )
    holders = {who for who in parties if who != SERVER and not is_shadow(who)}
    told = (("who {} are", truth.users, parties), ("what {} hold", truth.members, holders))
    for what, named, there in told:
        if strangers := sorted(named.keys() - set(there)):
            raise TranscriptError(
                f"{place}: says {what.format(', '.join(strangers))}, but the run is of "
                f"{', '.join(parties)}: name its clients as they are named there"
            )
