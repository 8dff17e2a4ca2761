"""Follows a target's data through a run; raises the alarm at a stated false-alarm rate."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, final

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.core.attack import Attack, Rehearsal
from overheard.core.claims import Timeline
from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.needs import AUXILIARY, BROADCASTS, MODEL, RECIPES, UPDATES
from overheard.core.parties import COHORT, SERVER, Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.data.splits.dirichlet import Dirichlet
from overheard.data.splits.iid import Iid
from overheard.questions.shift.claim import Measured, Shift
from overheard.questions.shift.estimators.alarm import alarm_set
from overheard.questions.shift.estimators.look_track import LookTrack, look_track
from overheard.questions.shift.estimators.mean_features import MeanFeatures
from overheard.questions.shift.estimators.share_track import ShareTrack, share_track
from overheard.simulation.answers import Answers, mean_logits, mean_softmax
from overheard.simulation.bank import Bank, build_bank, read_updates
from overheard.simulation.heard_alike import HeardAlike, heard_alike
from overheard.simulation.last_layer_change import LastLayerChange
from overheard.simulation.probe import Probe

CHANGE, ANSWERS, LOOK = LastLayerChange(), Answers(), MeanFeatures()
PROBES: Mapping[str, tuple[Probe, ...]] = {
    "shares": (CHANGE, ANSWERS),
    "representations": (LOOK,),
}
"""What is read to follow each."""

SPLITS = (Dirichlet(3.2), Dirichlet(10.0))
"""What clients of an industrial federation are taken to hold: much the same labels, in shares
that differ. Wider ones would teach to tell extremes apart that do not come."""

ALIKE = (Iid(fluctuation=0.0),)

FEWEST_ROUNDS = 3
"""Two to compare, and one more: from two alone any difference could be chance."""

FEWEST_VIRTUAL = 8


@final
@dataclass(frozen=True, slots=True)
class ShiftTracking(Attack[Shift]):
    """Follows what a target's updates tell of its data, and raises the alarm when it changes.

    In each round heard, virtual clients of known make-up train from the broadcast as clients
    do; regression from what their models answer, and how their last layer moved, to their
    shares reads the target's label shares (`estimators.share_track`). For a rival client the
    target is what remains of the global model when its own part is taken out, and virtual
    cohorts stand for it (Brunner and Montuoro 2024). With `follows = "representations"` it is
    followed how far the target moves the mean representations, beside virtual clients who hold
    every label alike (`estimators.look_track`): that shows a change of look, which leaves
    labels alone, and a large change of labels too, and does not tell which.

    The statistic is a generalised likelihood ratio for a change since any round, which gathers
    evidence as rounds come in (Siegmund and Venkatraman 1995). Its errors are those of virtual
    clients, who were read by regressions that had not met their examples. Its threshold is
    simulated: imagined runs put virtual clients' errors in a row, another client's after each
    exchange of examples, with the chance by which exchanged examples differ. The alarm is set
    so that a run in which nothing shifts raises one at all with chance `false_alarm_rate`.
    Where a target's readings step about more from round to round than virtual clients' do, a
    round counts for less. Statistics are made alike over rounds: cube root, centred and
    scaled by the imagined runs.

    The claim tells, alarm or not, since when the data most probably changed; of shares also how
    much each changed and what it is since, with covariances. As Brunner and Montuoro do, a
    rival that is told no sizes takes the others to be as large as itself.

    The rate is that of a target whose examples the attacker's are like, and whom the prior
    covers. It says nothing of a defense that is not known, nor of clients who differ in their
    labels where others of them are asked in each round: what is followed then changes by who
    is asked. A rival that is not asked in every round takes others to be asked as often. With
    fewer auxiliary examples than a client holds, virtual clients must repeat examples where
    real ones have new ones: changes are then told too large.

    Args:
        follows: the label shares, or the representations.
        most_virtual: how many virtual clients, or cohorts, are trained in each round, if the
            attacker's means allow as many.
        false_alarm_rate: chance of any alarm, over all rounds heard, where nothing shifts.

    """

    follows: Literal["shares", "representations"] = "shares"
    most_virtual: int = 48
    false_alarm_rate: float = 0.05

    name: ClassVar[str] = "shift_tracking"
    answers: ClassVar = Shift
    needs: ClassVar = frozenset({UPDATES, BROADCASTS, AUXILIARY, MODEL, RECIPES})
    source: ClassVar[str] = (
        "ours; the extracted model from Brunner and Montuoro 2024 (arXiv 2409.13875), the "
        "sequential test from Siegmund and Venkatraman 1995 (Annals of Statistics 23)"
    )
    orderless: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Refuse a rate that is none, and too few virtual clients to learn from."""
        if self.most_virtual < FEWEST_VIRTUAL:
            raise ValueError(
                f"most_virtual must be {FEWEST_VIRTUAL} or more, got {self.most_virtual}"
            )
        if not 0 < self.false_alarm_rate < 1:
            raise ValueError(
                f"false_alarm_rate lies between 0 and 1, got {self.false_alarm_rate}"
            )

    def rehearsal(self) -> Rehearsal:
        """Tell on whose updates it learns."""
        return "virtual clients"

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Shift]:
        """Claim of every target whether it shifted, since when and which way.

        Raises:
            NeedsError: if a target was heard in fewer than `FEWEST_ROUNDS` rounds, there are
                too few virtual clients, or what was heard of it is no number.

        """
        if knowledge.means.virtual_clients < FEWEST_VIRTUAL:
            raise NeedsError(
                f"{self.name} needs {FEWEST_VIRTUAL} virtual clients or more, got "
                f"{knowledge.means.virtual_clients}"
            )
        known = self._as_expected(view, knowledge)
        claims: dict[Party, Shift] = {}
        for group in heard_alike(view, targets, len(view.messages)):
            if len(group.rounds) < FEWEST_ROUNDS:
                raise NeedsError(
                    f"{self.name} on {', '.join(group.targets)} needs {FEWEST_ROUNDS} rounds "
                    f"or more to compare, heard are {len(group.rounds)}: record more of the run"
                )
            watch = _Watch(self, view, known, _as_asked(view, group), seed)
            claims |= {target: watch.claim(target) for target in group.targets}
        return claims

    def _as_expected(self, view: View, knowledge: Knowledge) -> Knowledge:
        """The same, with what this attacker takes for granted where nothing was said."""
        # An exchange errs by which examples are drawn: virtual clients must differ by that.
        prior, means = replace(knowledge.prior, resampled=True), knowledge.means
        if self.follows == "representations":
            prior = replace(prior, splits=ALIKE)
        elif not prior.splits:
            prior = replace(prior, splits=SPLITS)
        own = [
            update.examples
            for observer in view.observers
            for update in view.updates(observer).values()
            if update.examples and observer != COHORT
        ]
        others = [sender for sender in view.senders() if sender not in view.observers]
        if prior.sizes is None and own and not others:
            prior = replace(prior, sizes=(min(own), max(own)))
        virtual = min(means.virtual_clients, self.most_virtual)
        return replace(knowledge, prior=prior, means=replace(means, virtual_clients=virtual))


def _as_asked(view: View, group: HeardAlike) -> HeardAlike:
    """The same group, of as many clients as answer in a round where only some are asked.

    Who reads broadcasts does not see who was asked, but how often it was itself.
    """
    if group.members is None or SERVER in view.observers:
        return group
    heard = set(group.rounds)
    asked = [len(heard.intersection(view.heard(who))) for who in view.observers]
    share = sum(asked) / (len(asked) * len(heard))
    return replace(group, members=max(1, round(share * group.members))) if share else group


@final
class _Watch:
    """One group of targets beside the virtual clients that stand for them."""

    def __init__(
        self,
        attack: ShiftTracking,
        view: View,
        knowledge: Knowledge,
        group: HeardAlike,
        seed: Seed,
    ) -> None:
        self._attack, self._view, self._knowledge, self._group = attack, view, knowledge, group
        self._probes = PROBES[attack.follows]
        bank = build_bank(view, knowledge, group.rounds, self._probes, members=group.members)
        self._shares: ShareTrack | None = None
        self._looks: LookTrack | None = None
        if attack.follows == "shares":
            self._shares = share_track(_signs(bank.read), bank.shares, bank.halves)
            errors = self._shares.of_virtual - bank.shares[:, None]
            errors = errors + _draws(bank, seed.child("draws"))[:, None]
        else:
            self._looks = look_track(bank.read[LOOK])
            errors = self._looks.of_virtual
        self._alarm = alarm_set(errors, attack.false_alarm_rate, seed.child("imagined"))

    def claim(self, target: Party) -> Shift:
        rounds = self._group.rounds
        read = read_updates(self._view, target, self._knowledge, rounds, self._probes)
        if not all(bool(numbers.isfinite().all()) for numbers in read.values()):
            raise NeedsError(f"{target} sent what is no number: nothing can be read of it")
        if self._shares is not None:
            followed = self._shares.read(_signs({p: one[None] for p, one in read.items()})[0])
        else:
            assert self._looks is not None
            followed = self._looks.read(read[LOOK])
        statistic, since = self._alarm.read(followed)
        later, threshold = rounds[1:], self._alarm.threshold
        above = [n for n, one in zip(later, statistic, strict=True) if one > threshold]
        evidence_by_round = Timeline(
            later,
            tuple(statistic),
            (threshold,) * len(later),
            self._attack.false_alarm_rate,
            above[0] if above else None,
            rounds[since],
        )
        if self._shares is None:
            return Shift(evidence_by_round)
        return Shift(evidence_by_round, *self._measured(followed, since))

    def _measured(
        self, shares: Float[Tensor, "rounds classes"], since: int
    ) -> tuple[Measured, Measured]:
        """The change of shares at this place among the rounds, and what they are since."""
        model, unsteady = self._alarm.model, float(self._alarm.unsteady(shares))
        before, since_then = slice(None, since), slice(since, None)
        after = model.weights(since_then) @ shares[since:]
        change = after - model.weights(before) @ shares[:since]
        loose, wide = (
            kept + unsteady * own for kept, own in map(model.variances, (before, since_then))
        )
        return (
            Measured(change, model.covariance * (loose + wide)),
            Measured(after, model.covariance * wide),
        )


def _draws(bank: Bank, seed: Seed) -> Float[Tensor, "virtual classes"]:
    """By how much the shares of a client miss those of the population that it draws from.

    A shift is a change of the population. An exchange draws anew, and moves shares by chance:
    by little where clients are large, by more than a reading errs where they are small.
    """
    sizes, shares = bank.sizes.numpy(), bank.shares.numpy()
    counts = seed.numpy().multinomial(sizes, shares / shares.sum(1, keepdims=True))
    return torch.from_numpy(counts / sizes[:, None] - shares)


def _signs(
    read: Mapping[Probe, Float[Tensor, "clients rounds ..."]],
) -> Float[Tensor, "clients rounds classes signs"]:
    """What tells of each label: outputs for it, on its own and on others; and its row."""
    change = read[CHANGE]
    bias = change[..., -1]
    parts = [change[..., :-1].mean(-1), bias - bias.mean(-1, keepdim=True)]
    for outputs in (mean_softmax(read[ANSWERS]), mean_logits(read[ANSWERS])):
        beside_mean = outputs - outputs.mean(-1, keepdim=True)
        own = beside_mean.diagonal(dim1=-2, dim2=-1)
        parts += [own, beside_mean.sum(-2) - own]
    return torch.stack(parts, -1)
