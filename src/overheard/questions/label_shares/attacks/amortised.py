"""Label shares with intervals, by networks that virtual clients taught to read updates."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.core.attack import Attack, Rehearsal
from overheard.core.knowledge import Knowledge
from overheard.core.needs import AUXILIARY, BROADCASTS, MODEL, RECIPES, UPDATES
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.learning.simplex import normalised, shares_that_solve
from overheard.questions.label_shares.claim import LabelShares, SizeEstimate
from overheard.questions.label_shares.estimators.class_tokens import Readings
from overheard.questions.label_shares.estimators.conformal import Cases
from overheard.questions.label_shares.estimators.cross_fit import CrossFit
from overheard.questions.label_shares.estimators.kept_fit import kept_cross_fit
from overheard.questions.label_shares.estimators.size_reader import SizeReader, size_reader
from overheard.simulation.answers import Answers
from overheard.simulation.bank import build_bank, read_broadcasts, read_updates
from overheard.simulation.chunk import MOST_MEMBERS
from overheard.simulation.class_pull import ClassPull
from overheard.simulation.heard_alike import HeardAlike, heard_alike
from overheard.simulation.last_layer_change import LastLayerChange
from overheard.simulation.probe import Probe
from overheard.simulation.update_norms import UpdateNorms

CHANGE, ANSWERS, PULL, NORMS = LastLayerChange(), Answers(), ClassPull(), UpdateNorms()
PROBES: tuple[Probe, ...] = (CHANGE, ANSWERS, PULL, NORMS)


@final
@dataclass(frozen=True, slots=True)
class Amortised(Attack[LabelShares]):
    """Networks learn from virtual clients to tell shares from update and output, and how well.

    Whatever the optimizer, the number of local steps or the defense, the attacker can imitate
    it: virtual clients of known make-up train as clients do, and regression from what is read
    of them to their shares is an estimate that pays its cost once for all targets (amortised
    inference; Cranmer, Brehmer, Louppe 2020). Read are, in each round: the change of the last
    layer; mean logits and softmax outputs on held-out examples of each class, before and after;
    and how the pull of each class explains the change (`simulation.class_pull`), an exact
    equation for one step of SGD (Ramakrishna and Dan 2022) that the networks learn to correct
    for many.

    The equation of the output bias is solved too, its scale learned (`estimators.inversion`).
    Two kinds of network read a round: one class by class with shared weights, so that what is
    learned of one class serves all; one all numbers at once. Of each, one network learned from
    either half of the auxiliary examples and is judged on the virtual clients of the other
    half, and one learned from both. By that judgement the estimates of all kinds and rounds are
    weighted (non-negative least squares, Breiman 1996), and from the same residuals come, by
    conformal prediction (`estimators.conformal`), intervals for each share and the chance that
    a class is absent. A target's size is regressed on the lengths of its updates, with an
    interval, where it is not told in clear.

    Of a target whose numbers are too wild to be read, the claim is what the prior says of all
    clients. Intervals hold for clients like the virtual ones. They are too narrow where the
    auxiliary data are of another kind than the clients', where the prior leaves the client
    out, or where a defense is not known; that cannot be seen from within.

    Args:
        most_rounds: how many of the rounds heard are read: the first, the last, and evenly
            between. Later rounds tell less, as the model fits the data already.
        steps: of training each network.

    """

    most_rounds: int = 5
    steps: int = 400

    name: ClassVar[str] = "amortised"
    answers: ClassVar = LabelShares
    needs: ClassVar = frozenset({UPDATES, BROADCASTS, AUXILIARY, MODEL, RECIPES})
    source: ClassVar[str] = (
        "ours; virtual clients from Ma et al. 2025 (arXiv 2504.21436), the equation of the "
        "last layer from Ramakrishna and Dan 2022 (AISec)"
    )
    orderless: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Refuse settings that mean nothing."""
        if self.most_rounds < 1 or self.steps < 1:
            raise ValueError("most_rounds and steps must be 1 or more")

    def rehearsal(self) -> Rehearsal:
        """Tell on whose updates it learns."""
        return "virtual clients"

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, LabelShares]:
        """Claim every target's shares, with intervals, null probabilities and size."""
        claims: dict[Party, LabelShares] = {}
        groups = [
            self._spread(group) for group in heard_alike(view, targets, len(view.messages))
        ]
        fits: dict[tuple[int, int | None], CrossFit] = {}
        for group in groups:
            scene = _Scene(view, knowledge, group, _are_told(view))
            for number in group.rounds:
                key = (number, group.members)
                if key not in fits:
                    fits[key] = scene.fit(number, self.steps, seed.child("fit", number))
            claims |= scene.claims([fits[number, group.members] for number in group.rounds])
        return claims

    def _spread(self, group: HeardAlike) -> HeardAlike:
        most = min(self.most_rounds, len(group.rounds))
        last = len(group.rounds) - 1
        places = {round(place * last / max(1, most - 1)) for place in range(most)}
        return replace(group, rounds=tuple(group.rounds[place] for place in sorted(places)))


def _are_told(view: View) -> bool:
    """Whether sizes are told: of some updates only, an estimate by size would not be fair."""
    bodies = [body for who in view.senders() for body in view.updates(who).values()]
    return bool(bodies) and all(body.examples for body in bodies)


@final
class _Scene:
    """One group of targets beside the virtual clients that stand for them."""

    def __init__(self, view: View, knowledge: Knowledge, group: HeardAlike, told: bool) -> None:
        self._view, self._knowledge, self._group = view, knowledge, group
        self._bank = build_bank(view, knowledge, group.rounds, PROBES, members=group.members)
        self._before = read_broadcasts(view, knowledge, group.rounds, [ANSWERS])[ANSWERS]
        self._told = told and group.members is None

    def fit(self, number: int, steps: int, seed: Seed) -> CrossFit:
        bank = self._bank
        place = bank.rounds.index(number)
        sizes = bank.sizes.double().log().float() if self._told else None
        readings = self._readings(bank.read, place, sizes)
        shelf = self._knowledge.means.shelf
        return kept_cross_fit(shelf, readings, bank.shares, bank.halves, steps, seed)

    def claims(self, fits: Sequence[CrossFit]) -> dict[Party, LabelShares]:
        bank = self._bank
        known = torch.cat([fit.of_virtual for fit in fits])  # (estimates, virtual, classes)
        weights = pooling_weights(known, bank.shares)
        cases = Cases(torch.einsum("e,evc->vc", weights, known), bank.shares)
        reader = self._size_reader(cases)
        return {
            target: self._claim(target, fits, weights, cases, reader)
            for target in self._group.targets
        }

    def _claim(
        self,
        target: Party,
        fits: Sequence[CrossFit],
        weights: Float[Tensor, " estimates"],
        cases: Cases,
        reader: SizeReader,
    ) -> LabelShares:
        rounds = self._group.rounds
        read = read_updates(self._view, target, self._knowledge, rounds, PROBES)
        if not all(bool(numbers.isfinite().all()) for numbers in read.values()):
            return cases.unheard()
        updates = self._view.updates(target)
        told = [updates[number].examples for number in rounds]
        estimates = []
        for place, fit in enumerate(fits):
            size = told[place] if self._told else None
            sizes = None if size is None else torch.tensor([math.log(size)])
            own = {probe: numbers[None] for probe, numbers in read.items()}
            estimates.append(fit.read(self._readings(own, place, sizes))[:, :, 0])
        told_by = torch.einsum("e,enc->nc", weights, torch.cat(estimates))
        pair, of_both = told_by[:2], told_by[2]
        shares = normalised((pair.mean(0) + of_both) / 2)
        null = cases.null_probability(shares)
        known = [size for size in told if size]
        if len(known) == len(told):
            mean = sum(known) / len(known)
            own_size = SizeEstimate(mean, mean, mean)
        else:
            own_size = reader.read(read[NORMS].flatten()[None], shares[None])
        return LabelShares(
            shares.float(), null > 0.5, cases.bounds(shares, pair), null.float(), own_size
        )

    def _readings(
        self,
        read: Mapping[Probe, Tensor],
        place: int,
        log_sizes: Float[Tensor, " clients"] | None,
    ) -> Readings:
        return Readings(
            read[CHANGE][:, place],
            read[ANSWERS][:, place],
            self._before[place],
            read[PULL][:, place],
            log_sizes,
        )

    def _size_reader(self, cases: Cases) -> SizeReader:
        bank, clients = self._bank, self._group.clients
        # Of a larger cohort than virtual ones may be, each member stands for several.
        scale = clients / min(clients, MOST_MEMBERS)
        return size_reader(
            bank.read[NORMS].flatten(1), cases.estimates, bank.sizes * scale, bank.halves
        )


def pooling_weights(
    estimates: Float[Tensor, "estimates clients classes"],
    shares: Float[Tensor, "clients classes"],
) -> Float[Tensor, " estimates"]:
    """Weights of 0 or more that sum to 1, by which the pooled estimates miss least (L2).

    Breiman 1996 (Stacked Regressions); the estimates must be of clients that whoever made them
    had not met.
    """
    matrix = estimates.flatten(1).T.double()  # (clients * classes, estimates)
    triangle = torch.linalg.qr(torch.cat((matrix, shares.flatten()[:, None].double()), 1)).R
    return shares_that_solve(triangle[:, :-1], triangle[:, -1])
