"""Label shares that a recurrent network reads in test accuracies, round by round."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from math import ceil, log2
from typing import ClassVar, Literal, final

from jaxtyping import Float, Int
from torch import Tensor, nn

from overheard.core.attack import Attack, Rehearsal
from overheard.core.knowledge import Knowledge
from overheard.core.means import unheeded
from overheard.core.needs import AUXILIARY, BROADCASTS, MODEL, RECIPES, UPDATES
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.data.splits.iid import Iid
from overheard.learning.fitting.fit import FitSchedule, divergence, fit, told
from overheard.learning.fitting.temporal_attention import AttentiveRecurrence
from overheard.learning.simplex import normalised
from overheard.questions.label_shares.claim import LabelShares, SizeEstimate
from overheard.questions.label_shares.estimators.size_estimate import (
    LARGEST_SIZE,
    bisection,
    doubling,
)
from overheard.simulation.answers import Answers, accuracies
from overheard.simulation.bank import Bank, build_bank, read_updates
from overheard.simulation.chunk import MOST_MEMBERS
from overheard.simulation.heard_alike import HeardAlike, heard_alike
from overheard.simulation.sizes import size_range
from overheard.simulation.update_norms import UpdateNorms

ANSWERS = Answers()
NORMS = UpdateNorms()

NEAR = 2**0.5
"""How many times smaller or larger than the estimate a virtual client that teaches may be."""

ENOUGH = 400
"""Virtual clients that teach at the least: the nearest in size, where fewer are near.

On MNIST at 14 x 14 with ten clients of hidden size, three rounds: mean L1 0.457 with 200 of
1,200, 0.395 with 400, 0.378 with all; where sizes are told 0.382, 0.371 and 0.390."""

REPLICATES = 10
"""Virtual clients of a size that bisection trains, with make-ups drawn from the prior."""


@final
@dataclass(frozen=True, slots=True)
class Whispers(Attack[LabelShares]):
    """Virtual clients of the target's size teach a network to read test accuracies.

    Three stages. (1) The target's size is estimated from the length of its update
    (`estimators.size_estimate`). (2) Virtual clients of about that size learn from every
    broadcast anew, and the accuracy of each on held-out examples is taken class by class: a
    matrix of rounds x classes. (3) An LSTM with attention over rounds
    (`learning.fitting.temporal_attention`) learns to tell shares from such matrices, and reads
    the target's. A class that a client holds much of is told better after its training.

    The length of an update grows with the number of steps, and so with size, but also with how
    uneven the labels are: compared with virtual clients of even make-up, as doubling does it,
    an uneven target seems larger than it is. Clipping and noise hide it altogether.

    Differs from the paper: its cohort is trained for each target at its estimated size; here
    all targets share the bank, and those virtual clients teach whose size is within a factor of
    `NEAR` of the estimate (rounded to half powers of 2, so that targets share networks), or the
    `ENOUGH` nearest. Stage 1 looks at the first round heard, and the test set is the part of
    the auxiliary examples that is held out. What the paper leaves open is ours: an LSTM of 64,
    softmax outputs, the divergence as loss, Adam at 0.001 for 150 epochs, and the tolerance
    and first guess of stage 1. Of `COHORT`, virtual cohorts are compared and teach, and sizes
    are the means of their members'.

    Costs, beside the bank, about 4 s on one core for each network of 10 rounds and 10 classes
    that 900 virtual clients teach; doubling some 5 virtual clients, bisection some 100 a
    target.

    Args:
        size: "doubling" is Algorithm 1; "bisection" our repair of it, with an interval; "told"
            takes the size that an update tells in clear, as a server has it that weighs
            clients by size, and falls back on doubling where it is hidden.
        guess: examples with which doubling begins.
        tolerance: how far lengths may differ for doubling to end, as a part of the target's.
        taught: part of those virtual clients that teaches; the paper tests on the other.
        most_rounds: how many rounds are read at most: the first ones.
        loss: what the network minimises: the divergence of shares, or squared errors.
        hidden: width of the LSTM.
        epochs: of training the network.
        batch: virtual clients a step.
        rate: of Adam.

    """

    size: Literal["told", "doubling", "bisection"] = "told"
    guess: int = 500
    tolerance: float = 0.05
    taught: float = 0.75
    most_rounds: int = 10
    loss: Literal["divergence", "squared"] = "divergence"
    hidden: int = 64
    epochs: int = 150
    batch: int = 64
    rate: float = 1e-3

    name: ClassVar[str] = "whispers"
    answers: ClassVar = LabelShares
    needs: ClassVar = frozenset({UPDATES, BROADCASTS, AUXILIARY, MODEL, RECIPES})
    source: ClassVar[str] = (
        "Ma et al. 2025, Whispers of Data: Unveiling Label Distributions in Federated Learning "
        "Through Virtual Client Simulation (arXiv 2504.21436), Algorithms 1 and 2"
    )
    orderless: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Refuse settings that mean nothing."""
        if not 1 <= self.guess <= LARGEST_SIZE:
            raise ValueError(f"guess lies between 1 and {LARGEST_SIZE}, got {self.guess}")
        if not 0 < self.taught <= 1 or not self.tolerance > 0:
            raise ValueError("taught lies in (0, 1] and tolerance above 0")
        if self.most_rounds < 1 or self.hidden < 1:
            raise ValueError("most_rounds and hidden must be 1 or more")
        self._schedule()

    def rehearsal(self) -> Rehearsal:
        """Tell on whose updates it learns."""
        return "virtual clients"

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, LabelShares]:
        """Claim what the network tells of each target, and the size that was taken for it."""
        claims = {}
        for group in heard_alike(view, targets, self.most_rounds):
            bank = build_bank(view, knowledge, group.rounds, [ANSWERS], members=group.members)
            place = seed.child(self.name, *group.rounds)
            network_for = cache(partial(self._network, bank, group, knowledge, place))
            norms_of = cache(partial(virtual_norms, view, knowledge, group))
            for target in group.targets:
                size = self._size(view, target, group, knowledge, norms_of)
                network = network_for(half_octave(size.examples / group.clients))
                read = read_updates(view, target, knowledge, group.rounds, [ANSWERS])
                claim = told(network, accuracies(read[ANSWERS])[None])[0]
                claims[target] = LabelShares(normalised(claim).float(), size=size)
        return claims

    def _size(
        self,
        view: View,
        target: Party,
        group: HeardAlike,
        knowledge: Knowledge,
        norms_of: "NormsOf",
    ) -> SizeEstimate:
        """Stage 1."""
        updates = view.updates(target)
        said = [updates[number].examples for number in group.rounds]
        known = [float(examples) for examples in said if examples]
        if self.size == "told" and len(known) == len(said):
            mean = sum(known) / len(known)
            return SizeEstimate(mean, mean, mean)
        first = group.rounds[:1]
        read = read_updates(view, target, knowledge, first, [NORMS])[NORMS]
        goal = float(read[0, 0].exp())
        if self.size == "bisection":
            smallest, largest = size_range(view, knowledge.prior)
            return _times(
                bisection(partial(norms_of, "prior"), goal, smallest, largest), group.clients
            )

        def norm_of(size: int) -> float:
            return float(norms_of("even", size)[0])

        return _times(doubling(norm_of, goal, self.guess, self.tolerance), group.clients)

    def _network(
        self, bank: Bank, group: HeardAlike, knowledge: Knowledge, seed: Seed, octave: int
    ) -> nn.Module:
        """Stages 2 and 3 for targets of about this size."""
        sizes = bank.sizes / min(group.clients, MOST_MEMBERS)
        rows = teachers(sizes, octave)
        rows = rows[: ceil(self.taught * len(rows))]
        features = accuracies(bank.read[ANSWERS])  # (virtual, rounds, classes)
        classes = knowledge.classes
        return fit(
            partial(AttentiveRecurrence, classes, classes, self.hidden),
            features[rows],
            bank.shares[rows],
            divergence if self.loss == "divergence" else squared,
            self._schedule(),
            seed.child("network", octave),
            knowledge.means.device,
        )

    def _schedule(self) -> FitSchedule:
        return FitSchedule(self.epochs, self.batch, self.rate)


MakeUp = Literal["even", "prior"]
"""All labels about alike, or drawn from the prior."""

NormsOf = Callable[[MakeUp, int], Float[Tensor, " replicates"]]
"""Lengths of the updates of virtual clients of this make-up and size."""


def virtual_norms(
    view: View, knowledge: Knowledge, group: HeardAlike, kind: MakeUp, size: int
) -> Float[Tensor, " replicates"]:
    """How long the updates of fresh virtual clients are, in the first round of the group.

    Args:
        view: for the broadcast.
        knowledge: as for the bank.
        group: whose first round it is, and of how many clients an update is the mean.
        kind: "even": one client (or cohort) that holds all labels about alike, as the paper has
            it; "prior": `REPLICATES`, of make-ups drawn from the prior.
        size: examples of each client.

    """
    prior = replace(knowledge.prior, sizes=(size, size))
    even = kind == "even"
    if even:
        prior = replace(prior, splits=(Iid(),))
    # So few are trained here and now, and are no progress worth telling.
    means = replace(
        knowledge.means,
        virtual_clients=1 if even else REPLICATES,
        workers=1,
        cluster=None,
        on_progress=unheeded,
    )
    bank = build_bank(
        view,
        replace(knowledge, prior=prior, means=means),
        group.rounds[:1],
        [NORMS],
        members=group.members,
    )
    return bank.read[NORMS][:, 0, 0].exp()


def half_octave(examples: float) -> int:
    """The nearest power of the square root of 2: 0 for 1, 2 for 2, 3 for 2.83, 4 for 4."""
    return round(2 * log2(examples))


def teachers(sizes: Float[Tensor, " virtual"], octave: int) -> Int[Tensor, " _near"]:
    """The virtual clients that are near enough in size, in the order of the bank."""
    away = (sizes.log2() - octave / 2).abs()
    near = (away <= log2(NEAR)).nonzero().flatten()
    return near if len(near) >= ENOUGH else away.argsort(stable=True)[:ENOUGH].sort().values


def squared(
    logits: Float[Tensor, "clients classes"], shares: Float[Tensor, "clients classes"]
) -> Float[Tensor, ""]:
    """Mean over clients and classes of the squared error of the shares."""
    return nn.functional.mse_loss(logits.softmax(1), shares)


def _times(size: SizeEstimate, clients: int) -> SizeEstimate:
    """The size of all clients of a cohort together, from that of one."""
    ends = [None if end is None else clients * end for end in (size.low, size.high)]
    return SizeEstimate(clients * size.examples, ends[0], ends[1], size.converged)
