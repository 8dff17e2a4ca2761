"""Whether an attack finds what is there, and nothing where nothing is."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TypeVar

import torch
from torch import Tensor

from overheard.core.examples import Examples
from overheard.core.parties import SERVER
from overheard.questions.attribute.claim import Attribute
from overheard.questions.identity.claim import Identity
from overheard.questions.label_shares.claim import LabelShares
from overheard.questions.membership.claim import Membership
from overheard.questions.same_sender.claim import SameSender
from overheard.questions.shift.claim import Shift
from overheard.testing.require import require
from overheard.testing.trial import Trial, claims_of, mean_gain, shifting, skewed
from overheard.testing.worlds import planted
from overheard.testing.worlds.planted_shift import SINCE, SOON, ShiftingRun, renumbered
from overheard.testing.worlds.world import World

ORDER = torch.tensor([2, 0, 3, 1])
"""New class i is old class ORDER[i]."""

T = TypeVar("T")


def finds_the_leak(trial: Trial) -> None:
    """See that it beats the blind guess on the run that was given as leaky."""
    if trial.is_gain_known:
        gain = mean_gain(trial, trial.leaky[0])
        require(gain > 0, _tells(trial, gain, "more than 0 where the answer leaks"))


def finds_nothing_in_silence(trial: Trial) -> None:
    """See that it gains less than half as much on the run that was given as silent."""
    if trial.is_gain_known and trial.silent:
        most = mean_gain(trial, trial.leaky[0]) / 2
        gain = mean_gain(trial, trial.silent[0])
        require(gain < most, _tells(trial, gain, f"less than {most:.3f} where nothing leaks"))


def finds_planted_shares(trial: Trial) -> None:
    """See that it beats the blind guess on a planted leak."""
    gain = mean_gain(trial, trial.leaky[0])
    require(gain > 0.1, _tells(trial, gain, "more than 0.1 where label shares leak"))


def finds_no_shares_where_nothing_leaks(trial: Trial) -> None:
    """See that it does not beat the blind guess where no update has anything of its data."""
    for world in trial.silent:
        gain = mean_gain(trial, world)
        require(gain <= 0.05, _tells(trial, gain, "at most 0.05 where nothing leaks"))


def relabels_its_shares_with_the_classes(trial: Trial) -> None:
    """See that other numbers for the classes number its claims otherwise, and no more."""
    if trial.leaky[0] is not skewed():
        return
    if not trial.attack.orderless:
        # Another numbering makes another network, which must find the leak all the same.
        gain = mean_gain(trial, relabelled())
        require(gain > 0.1, _tells(trial, gain, "more than 0.1 where classes are renumbered"))
        return
    before = _all(trial, skewed(), LabelShares)
    after = _all(trial, relabelled(), LabelShares)
    for one, other in zip(before, after, strict=True):
        require(
            torch.allclose(other.shares, one.shares[ORDER], atol=1e-3, rtol=0),
            f"{trial.attack.name}: other numbers for the classes change its claims: say "
            "`orderless = False` if its draws hang on the numbers",
        )


@cache
def relabelled() -> planted.Overheard:
    """The skewed run, where new class i is old class `ORDER[i]`."""
    leaky = skewed()
    auxiliary = leaky.knowledge.auxiliary
    assert auxiliary is not None
    return planted.hold(
        _renumbered(leaky.start),
        [_renumbered(delta) for delta in leaky.deltas],
        [leaky.truth.counts[0, who][ORDER].tolist() for who in leaky.targets],
        Examples(auxiliary.inputs, ORDER.argsort()[auxiliary.labels]),
        [replace(one, labels=one.labels[:, ORDER]) for one in leaky.sets],
    )


@cache
def renumbered_shifts() -> tuple[ShiftingRun, ...]:
    """The shifting runs, where new class i is old class `ORDER[i]`."""
    return tuple(renumbered(run, ORDER) for run in shifting())


def finds_most_of_the_planted_shifts(trial: Trial) -> None:
    """See that its statistic peaks soon after most of the shifts."""
    share = _share_of_peaks(trial, trial.leaky)
    require(share > 0.5, f"{trial.attack.name} finds {share:.0%} of shifts, expected over 50 %")


def finds_no_shift_where_nothing_changes(trial: Trial) -> None:
    """See that its statistic does not peak there without a shift."""
    share = _share_of_peaks(trial, trial.silent)
    require(
        share < 0.5,
        f"{trial.attack.name} finds shifts in {share:.0%} of runs without any, expected less "
        "than 50 %",
    )


def tells_of_rounds_that_were_heard(trial: Trial) -> None:
    """See that its evidence speaks of rounds that were heard."""
    world = trial.world
    heard = world.transcript.seen_by(SERVER).rounds()
    for claim in _all(trial, world, Shift):
        require(
            set(claim.evidence.rounds) <= set(heard) and claim.evidence.since in heard,
            f"{trial.attack.name} tells of rounds that were not heard",
        )


def moves_no_evidence_with_the_numbers_of_classes(trial: Trial) -> None:
    """See that other numbers for the classes change no statistic."""
    if trial.leaky[0] is not shifting()[0]:
        return
    if not trial.attack.orderless:
        # Another numbering makes other virtual clients, who must show the shift as well.
        share = _share_of_peaks(trial, renumbered_shifts())
        require(
            share > 0.5,
            f"{trial.attack.name} finds {share:.0%} of shifts where classes are renumbered",
        )
        return
    before = _all(trial, shifting()[0], Shift)
    after = _all(trial, renumbered_shifts()[0], Shift)
    for one, other in zip(before, after, strict=True):
        largest = max(one.evidence.statistic)
        gaps = [
            abs(left - right)
            for left, right in zip(
                one.evidence.statistic, other.evidence.statistic, strict=True
            )
        ]
        require(
            max(gaps) <= 1e-4 * largest,
            f"{trial.attack.name}: other numbers for the classes move its evidence: say "
            "`orderless = False` if its draws hang on the numbers",
        )


def finds_records_learned_by_heart(trial: Trial) -> None:
    """See that it beats the blind guess where records were learned by heart."""
    gain = mean_gain(trial, trial.leaky[0])
    require(gain > 0.2, _tells(trial, gain, "more than 0.2 where records are learned by heart"))


def finds_no_records_that_nobody_saw(trial: Trial) -> None:
    """See that it does not beat the blind guess where nobody saw the records."""
    for world in trial.silent:
        gain = mean_gain(trial, world)
        require(abs(gain) <= 0.06, _tells(trial, gain, "0 within 0.06 where nobody saw them"))


def speaks_of_every_record(trial: Trial) -> None:
    """See that it has a score for every record that is asked about."""
    candidates = trial.world.knowledge.candidates
    assert candidates is not None
    for claim in _all(trial, trial.world, Membership):
        require(
            len(claim.scores) == len(candidates),
            f"{trial.attack.name} scores {len(claim.scores)} records of {len(candidates)}",
        )


def names_people(trial: Trial) -> None:
    """See that it beats the blind guess where people differ."""
    gain = mean_gain(trial, trial.leaky[0])
    require(gain > 0.25, _tells(trial, gain, "more than 0.25 where people differ"))


def names_nobody_where_all_are_alike(trial: Trial) -> None:
    """See that it does not beat the blind guess where people are alike."""
    for world in trial.silent:
        gain = mean_gain(trial, world)
        require(gain <= 0.15, _tells(trial, gain, "at most 0.15 where all people are alike"))


def ranks_all_whom_it_may_name(trial: Trial) -> None:
    """See that it ranks every known user, and nobody else."""
    known = set(trial.world.knowledge.people.priors)
    for claim in _all(trial, trial.world, Identity):
        require(
            set(claim.users) == known,
            f"{trial.attack.name} ranks {sorted(claim.users)}, may name {sorted(known)}",
        )


def compares_with_others_of_the_crowd(trial: Trial) -> None:
    """See that it compares a sender with other senders alone."""
    crowd = set(trial.world.targets)
    for who, claim in claims_of(trial.attack, trial.world).items():
        require(
            isinstance(claim, SameSender) and set(claim.others) <= crowd - {who},
            f"{trial.attack.name} compares {who} with somebody outside of the crowd",
        )


def tells_an_attribute_by_its_values(trial: Trial) -> None:
    """See that it tells an attribute that is known of others, by the values that they have."""
    known = trial.world.knowledge.people.attributes
    for claim in _all(trial, trial.world, Attribute):
        require(
            set(claim.values) == set(known.get(claim.attribute, {}).values()),
            f"{trial.attack.name} tells {claim.attribute!r} by {claim.values}",
        )


def _renumbered(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    last = {"2.weight", "2.bias"}
    return {key: w[ORDER] if key in last else w for key, w in weights.items()}


def _all(trial: Trial, world: World, kind: type[T]) -> list[T]:
    """The claims about a run, in the order of its targets."""
    claims = claims_of(trial.attack, world)
    for claim in claims.values():
        require(
            isinstance(claim, kind),
            f"{trial.attack.name} claims {type(claim).__name__}, answers {kind.__name__}",
        )
    return [claims[who] for who in world.targets]


def _share_of_peaks(trial: Trial, worlds: Sequence[World]) -> float:
    """Of targets whose statistic soon after `SINCE` tops all that came before."""
    peaks = list[bool]()
    for world in worlds:
        for claim in _all(trial, world, Shift):
            by_round = dict(zip(claim.evidence.rounds, claim.evidence.statistic, strict=True))
            earlier = [value for number, value in by_round.items() if number < SINCE]
            peaks.append(max(by_round[number] for number in SOON) > max(earlier))
    return sum(peaks) / len(peaks)


def _tells(trial: Trial, gain: float, expected: str) -> str:
    return (
        f"{trial.attack.name}: its gain over the best blind guess is {gain:.3f}, expected "
        f"{expected}"
    )
