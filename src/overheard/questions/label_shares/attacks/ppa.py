"""Label shares that a linear layer reads in how sensitive a client's model is to each class."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal, final

from jaxtyping import Float
from torch import Tensor, nn

from overheard.core.attack import Attack, Rehearsal
from overheard.core.knowledge import Knowledge
from overheard.core.needs import AUXILIARY, BROADCASTS, MODEL, RECIPES, UPDATES
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.learning.fitting.fit import FitSchedule, divergence, fit, told
from overheard.learning.fitting.standard import standard_of
from overheard.learning.simplex import normalised
from overheard.questions.label_shares.claim import LabelShares
from overheard.questions.label_shares.estimators.differential_sensitivity import (
    DifferentialSensitivity,
)
from overheard.simulation.bank import build_bank, read_updates
from overheard.simulation.heard_alike import heard_alike


@final
@dataclass(frozen=True, slots=True)
class Ppa(Attack[LabelShares]):
    """A linear classifier on the differential sensitivity to each class, fitted on the bank.

    The paper asks for the class that a client holds most of: form "preference" is its method,
    and takes the classifier's probabilities for shares, as Ma et al. 2025 do to compare with
    it. They say how sure the classifier is of the one class, and are far too peaky as shares,
    often worse than claiming all classes alike. Form "shares" fits the same classifier to the
    shares themselves: the fair comparison, and the default.

    Differs from the paper: it holds no selective aggregation, which is an active attack;
    virtual clients are the bank's, where the paper's hold 3,000 examples of one class and 200
    of every other; sensitivities are brought to one scale, where the code stores them as JPEG;
    rounds stand side by side, where the paper looks at one; sensitivity is read in the last
    layer unless another is named, where the code reads its last convolution.

    Costs about classes * samples * epochs examples of training for each virtual client, target
    and round: mostly more than training the virtual clients themselves.

    Args:
        form: what the classifier is fitted to.
        layer: in which sensitivity is read: "last", or a module's name.
        samples: examples of a class from which a model is trained on, at most.
        retraining: epochs of that training.
        most_rounds: how many rounds are read at most: the first ones.
        epochs: of fitting the classifier.
        batch: virtual clients a step.
        rate: of Adam, as it fits the classifier (Keras's default).

    """

    form: Literal["shares", "preference"] = "shares"
    layer: str = "last"
    samples: int = 128
    retraining: int = 5
    most_rounds: int = 1
    epochs: int = 1000
    batch: int = 128
    rate: float = 1e-3

    name: ClassVar[str] = "ppa"
    answers: ClassVar = LabelShares
    needs: ClassVar = frozenset({UPDATES, BROADCASTS, AUXILIARY, MODEL, RECIPES})
    source: ClassVar[str] = (
        "Zhou et al. 2023, PPA: Preference Profiling Attack Against Federated Learning (NDSS; "
        "arXiv 2202.04856), with their code; as an estimator of shares after Ma et al. 2025"
    )
    orderless: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Refuse settings that mean nothing."""
        if self.most_rounds < 1:
            raise ValueError(f"most_rounds must be 1 or more, got {self.most_rounds}")
        self._probe()
        self._schedule()

    def rehearsal(self) -> Rehearsal:
        """Tell on whose updates it learns."""
        return "virtual clients"

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, LabelShares]:
        """Claim what the classifier tells of each target."""
        probe = self._probe()
        claims = {}
        for group in heard_alike(view, targets, self.most_rounds):
            bank = build_bank(view, knowledge, group.rounds, [probe], members=group.members)
            numbers = bank.read[probe].flatten(1)  # (virtual, rounds * classes)
            standard = standard_of(numbers)
            classifier = fit(
                partial(nn.Linear, numbers.shape[1], knowledge.classes),
                standard.of(numbers),
                bank.shares if self.form == "shares" else preferences(bank.shares),
                divergence,
                self._schedule(),
                seed.child(self.name, *group.rounds),
                knowledge.means.device,
            )
            for target in group.targets:
                read = read_updates(view, target, knowledge, group.rounds, [probe])[probe]
                claim = told(classifier, standard.of(read.flatten()[None]))[0]
                claims[target] = LabelShares(normalised(claim).float())
        return claims

    def _probe(self) -> DifferentialSensitivity:
        return DifferentialSensitivity(self.layer, self.samples, self.retraining)

    def _schedule(self) -> FitSchedule:
        return FitSchedule(self.epochs, self.batch, self.rate)


def preferences(
    shares: Float[Tensor, "clients classes"],
) -> Float[Tensor, "clients classes"]:
    """All of the share to the class that a client holds most of; the first of several.

    Under it the divergence is the cross-entropy that the paper minimises.
    """
    most = shares.argmax(1)
    return nn.functional.one_hot(most, shares.shape[1]).to(shares.dtype)
