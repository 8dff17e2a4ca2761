"""Checks that an attack finds planted leaks, and nothing in runs that do not leak."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TypeVar

import torch
from torch import Tensor

from overheard.core.examples import Examples
from overheard.core.known_facts.candidate_records import candidate_records
from overheard.core.known_facts.known_users import KnownUsers
from overheard.core.known_facts.token_words import TokenWords
from overheard.core.parties import SERVER
from overheard.questions.attribute.claim import Attribute
from overheard.questions.identity.claim import Identity
from overheard.questions.label_shares.claim import LabelShares
from overheard.questions.membership.claim import Membership
from overheard.questions.same_sender.claim import SameSender
from overheard.questions.shift.claim import Shift
from overheard.questions.words.claim import Words
from overheard.testing.planted_runs import planted_labels
from overheard.testing.planted_runs.planted_run import PlantedRun
from overheard.testing.planted_runs.planted_shift import (
    ROUNDS_AFTER_SHIFT,
    SHIFT_ROUND,
    ShiftingRun,
    permute_classes,
)
from overheard.testing.require import require
from overheard.testing.trial import (
    AttackTrial,
    cached_claims,
    mean_gain,
    shifting_runs,
    skewed_run,
)

ORDER = torch.tensor([2, 0, 3, 1])
"""New class i is old class ORDER[i]."""

T = TypeVar("T")


def beats_guessing_on_the_leaky_run(trial: AttackTrial) -> None:
    """Check that it beats the uninformed guess on the leaky run."""
    if trial.is_gain_known:
        gain = mean_gain(trial, trial.leaky_runs[0])
        require(gain > 0, _gain_message(trial, gain, "more than 0 where the answer leaks"))


def gains_less_on_the_leak_free_run(trial: AttackTrial) -> None:
    """Check that it gains less than half as much on the leak-free run."""
    if trial.is_gain_known and trial.leak_free_runs:
        most = mean_gain(trial, trial.leaky_runs[0]) / 2
        gain = mean_gain(trial, trial.leak_free_runs[0])
        require(
            gain < most, _gain_message(trial, gain, f"less than {most:.3f} where nothing leaks")
        )


def finds_planted_shares(trial: AttackTrial) -> None:
    """Check that it beats the uninformed guess on a planted leak."""
    _require_gain(trial, 0.1, "label shares leak")


def finds_no_shares_where_nothing_leaks(trial: AttackTrial) -> None:
    """Check that it does not beat the uninformed guess if updates do not depend on the data."""
    _require_no_gain(trial, 0.05, "nothing leaks")


def permuting_classes_permutes_shares(trial: AttackTrial) -> None:
    """Check that permuting the classes merely permutes its claims."""
    if trial.leaky_runs[0] is not skewed_run():
        return
    if not trial.attack.is_label_equivariant:
        # A permutation changes its networks, which must find the leak all the same.
        gain = mean_gain(trial, permuted_skewed_run())
        require(
            gain > 0.1, _gain_message(trial, gain, "more than 0.1 where classes are permuted")
        )
        return
    before = _claims(trial, skewed_run(), LabelShares)
    after = _claims(trial, permuted_skewed_run(), LabelShares)
    for one, other in zip(before, after, strict=True):
        require(
            torch.allclose(other.shares, one.shares[ORDER], atol=1e-3, rtol=0),
            f"{trial.attack.name}: permuting the classes changes its claims: set "
            "`is_label_equivariant = False` if its draws depend on the order of classes",
        )


@cache
def permuted_skewed_run() -> planted_labels.LabelSharesRun:
    """Return the skewed run with permuted classes: new class i is old class `ORDER[i]`."""
    run = skewed_run()
    auxiliary = run.knowledge.auxiliary
    assert auxiliary is not None
    return planted_labels.assemble_run(
        _permute_classes(run.start),
        [_permute_classes(delta) for delta in run.deltas],
        [run.truth.counts[0, target][ORDER].tolist() for target in run.targets],
        Examples(auxiliary.inputs, ORDER.argsort()[auxiliary.labels]),
        [replace(one, labels=one.labels[:, ORDER]) for one in run.sets],
    )


@cache
def permuted_shift_runs() -> tuple[ShiftingRun, ...]:
    """Return the runs with a shift, with permuted classes: new class i is `ORDER[i]`."""
    return tuple(permute_classes(run, ORDER) for run in shifting_runs())


def finds_most_of_the_planted_shifts(trial: AttackTrial) -> None:
    """Check that its statistic peaks soon after most of the shifts."""
    share = _share_of_peaks(trial, trial.leaky_runs)
    require(share > 0.5, f"{trial.attack.name} finds {share:.0%} of shifts, expected over 50 %")


def finds_no_shift_where_nothing_changes(trial: AttackTrial) -> None:
    """Check that its statistic rarely peaks there without a shift."""
    share = _share_of_peaks(trial, trial.leak_free_runs)
    require(
        share < 0.5,
        f"{trial.attack.name} finds shifts for {share:.0%} of targets without one, expected "
        "less than 50 %",
    )


def evidence_covers_observed_rounds_only(trial: AttackTrial) -> None:
    """Check that its evidence is about observed rounds only."""
    run = trial.first_run
    observed = run.transcript.seen_by(SERVER).rounds()
    for claim in _claims(trial, run, Shift):
        require(
            set(claim.evidence.rounds) <= set(observed) and claim.evidence.since in observed,
            f"{trial.attack.name} claims something about rounds that were not observed",
        )


def permuting_classes_keeps_evidence(trial: AttackTrial) -> None:
    """Check that permuting the classes does not change its statistic."""
    if trial.leaky_runs[0] is not shifting_runs()[0]:
        return
    if not trial.attack.is_label_equivariant:
        # A permutation changes its virtual clients, which must reveal the shift as well.
        share = _share_of_peaks(trial, permuted_shift_runs())
        require(
            share > 0.5,
            f"{trial.attack.name} finds {share:.0%} of shifts where classes are permuted, "
            "expected over 50 %",
        )
        return
    before = _claims(trial, shifting_runs()[0], Shift)
    after = _claims(trial, permuted_shift_runs()[0], Shift)
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
            f"{trial.attack.name}: permuting the classes changes its evidence: set "
            "`is_label_equivariant = False` if its draws depend on the order of classes",
        )


def finds_memorised_records(trial: AttackTrial) -> None:
    """Check that it beats the uninformed guess where records were memorised."""
    _require_gain(trial, 0.2, "records are memorised")


def finds_no_unseen_records(trial: AttackTrial) -> None:
    """Check that it does not beat the uninformed guess where no client saw the records."""
    for run in trial.leak_free_runs:
        gain = mean_gain(trial, run)
        require(
            abs(gain) <= 0.06,
            _gain_message(trial, gain, "0 within 0.06 where no client saw the records"),
        )


def scores_every_record(trial: AttackTrial) -> None:
    """Check that it has a score for every candidate record."""
    candidates = candidate_records(trial.first_run.knowledge)
    for claim in _claims(trial, trial.first_run, Membership):
        require(
            len(claim.scores) == len(candidates),
            f"{trial.attack.name} returns {len(claim.scores)} scores for {len(candidates)} "
            "candidate records",
        )


def finds_words_of_its_own(trial: AttackTrial) -> None:
    """Check that it beats the uninformed guess where clients have words of their own."""
    _require_gain(trial, 0.3, "words leak")


def finds_no_words_of_others(trial: AttackTrial) -> None:
    """Check that it does not beat the guess where updates do not depend on the texts."""
    _require_no_gain(trial, 0.1, "nothing leaks")


def scores_every_word(trial: AttackTrial) -> None:
    """Check that it has a score for every word of the vocabulary."""
    words = trial.first_run.knowledge.facts.need(TokenWords)
    for claim in _claims(trial, trial.first_run, Words):
        require(
            len(claim.scores) == len(words),
            f"{trial.attack.name} returns {len(claim.scores)} scores for {len(words)} words",
        )


def identifies_users(trial: AttackTrial) -> None:
    """Check that it beats the uninformed guess where users differ."""
    _require_gain(trial, 0.25, "users differ")


def identifies_no_identical_users(trial: AttackTrial) -> None:
    """Check that it does not beat the uninformed guess where users are identical."""
    _require_no_gain(trial, 0.15, "users are identical")


def ranks_all_known_users(trial: AttackTrial) -> None:
    """Check that it ranks every candidate user, and nobody else."""
    known = set(KnownUsers.of(trial.first_run.knowledge).prior_examples)
    for claim in _claims(trial, trial.first_run, Identity):
        require(
            set(claim.users) == known,
            f"{trial.attack.name} ranks {sorted(claim.users)}, expected {sorted(known)}",
        )


def compares_with_other_senders_only(trial: AttackTrial) -> None:
    """Check that it compares a sender with other senders only."""
    senders = set(trial.first_run.targets)
    for target, claim in cached_claims(trial.attack, trial.first_run).items():
        require(
            isinstance(claim, SameSender) and set(claim.others) <= senders - {target},
            f"{trial.attack.name} compares {target} with a party that is not another sender",
        )


def claims_known_attribute_values(trial: AttackTrial) -> None:
    """Check that it claims a known attribute, with the values known of other users."""
    known = KnownUsers.of(trial.first_run.knowledge).attributes
    for claim in _claims(trial, trial.first_run, Attribute):
        require(
            set(claim.values) == set(known.get(claim.attribute, {}).values()),
            f"{trial.attack.name} claims {claim.attribute!r} with the values {claim.values}, "
            "which are not the known ones",
        )


def _permute_classes(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    last = {"2.weight", "2.bias"}
    return {key: w[ORDER] if key in last else w for key, w in weights.items()}


def _claims(trial: AttackTrial, run: PlantedRun, kind: type[T]) -> list[T]:
    """Return the claims about a run, in the order of its targets."""
    claims = cached_claims(trial.attack, run)
    for claim in claims.values():
        require(
            isinstance(claim, kind),
            f"{trial.attack.name} returns {type(claim).__name__}, expected {kind.__name__}",
        )
    return [claims[target] for target in run.targets]


def _share_of_peaks(trial: AttackTrial, runs: Sequence[PlantedRun]) -> float:
    """Return the share of targets whose statistic peaks soon after `SHIFT_ROUND`."""
    peaks = list[bool]()
    for run in runs:
        for claim in _claims(trial, run, Shift):
            by_round = dict(zip(claim.evidence.rounds, claim.evidence.statistic, strict=True))
            earlier = [value for number, value in by_round.items() if number < SHIFT_ROUND]
            peaks.append(max(by_round[number] for number in ROUNDS_AFTER_SHIFT) > max(earlier))
    return sum(peaks) / len(peaks)


def _require_gain(trial: AttackTrial, least: float, where: str) -> None:
    """Check that it gains more than this on the leaky run."""
    gain = mean_gain(trial, trial.leaky_runs[0])
    require(gain > least, _gain_message(trial, gain, f"more than {least} where {where}"))


def _require_no_gain(trial: AttackTrial, most: float, where: str) -> None:
    """Check that it gains at most this on each leak-free run."""
    for run in trial.leak_free_runs:
        gain = mean_gain(trial, run)
        require(gain <= most, _gain_message(trial, gain, f"at most {most} where {where}"))


def _gain_message(trial: AttackTrial, gain: float, expected: str) -> str:
    return (
        f"{trial.attack.name}: its gain over the best uninformed guess is {gain:.3f}, expected "
        f"{expected}"
    )
