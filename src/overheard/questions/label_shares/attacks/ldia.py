"""Label shares that a convolutional network reads in the last layer's changes over rounds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal, final

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.core.attack import Attack, Rehearsal
from overheard.core.knowledge import Knowledge
from overheard.core.needs import AUXILIARY, BROADCASTS, MODEL, RECIPES, UPDATES
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.learning.fitting.fit import FitSchedule, divergence, fit, told
from overheard.learning.fitting.rounds_image import rounds_image_network
from overheard.learning.simplex import normalised
from overheard.questions.label_shares.claim import LabelShares
from overheard.simulation.bank import build_bank, read_updates
from overheard.simulation.heard_alike import heard_alike
from overheard.simulation.last_layer_change import LastLayerChange

CHANGE = LastLayerChange()

SHARE_DIGITS = 2
CLAIM_DIGITS = 3
"""To how many digits Gu and Bai's code rounds true and claimed shares."""


@final
@dataclass(frozen=True, slots=True)
class Ldia(Attack[LabelShares]):
    """A network trained on virtual clients reads the changes of the last layer's weight.

    The changes of up to `most_rounds` rounds are stacked into an image of rounds x (classes *
    features), and a convolutional network (`learning.fitting.rounds_image`) tells label shares
    from it. One network for each distinct set of rounds in which targets were heard.

    Costs, beside the bank, `epochs` passes over it for each network: of 1,200 virtual clients,
    10 classes and 10 rounds about 4 minutes on one core for a last layer of 64 features, and
    8 hours for one of 512, as the first convolution grows with the square of its width. Without
    convolutions it is half a minute and 5 minutes.

    Differs from the paper: virtual clients start from the broadcasts as they were, where the
    paper lets each take part in an averaging of its own; their sizes follow the prior, where
    the paper hands the attacker the true ones; their make-up is the prior's, whose default
    mixture has the paper's (`data.splits.faces`) as one part.

    Args:
        loss: "corrected" is the divergence that the paper writes; "published" what its code
            computes: PyTorch's KLDivLoss fed with probabilities in place of their logarithms,
            which is least where everything is claimed for the largest class.
        convolutions: whether the network has those of the paper, or its linear layers only, as
            it has anyway for few rounds.
        rounding: whether true shares are rounded to 2 digits, and claims to 3, as in the code.
        most_rounds: how many rounds the image holds at most: the first ones.
        epochs: of training the network; the rate falls to a tenth after `slow_after`.
        batch: virtual clients a step.
        rate: of Adam.
        slow_after: epochs at the full rate.

    """

    loss: Literal["corrected", "published"] = "corrected"
    rounding: bool = True
    convolutions: bool = True
    most_rounds: int = 10
    epochs: int = 100
    batch: int = 64
    rate: float = 1e-3
    slow_after: int = 51

    name: ClassVar[str] = "ldia"
    answers: ClassVar = LabelShares
    needs: ClassVar = frozenset({UPDATES, BROADCASTS, AUXILIARY, MODEL, RECIPES})
    source: ClassVar[str] = (
        "Gu and Bai 2023, LDIA: Label Distribution Inference Attack Against Federated Learning "
        "in Edge Computing (JISA 74), with their code"
    )
    orderless: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Refuse settings that mean nothing."""
        if self.most_rounds < 1:
            raise ValueError(f"most_rounds must be 1 or more, got {self.most_rounds}")
        self._schedule()

    def rehearsal(self) -> Rehearsal:
        """Tell on whose updates it learns."""
        return "virtual clients"

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, LabelShares]:
        """Claim what the network tells of each target."""
        claims = {}
        for group in heard_alike(view, targets, self.most_rounds):
            bank = build_bank(view, knowledge, group.rounds, [CHANGE], members=group.members)
            images = _images(bank.read[CHANGE])
            _, rounds, width = images.shape
            shares = rounded_shares(bank.shares) if self.rounding else bank.shares
            network = fit(
                partial(
                    rounds_image_network,
                    rounds,
                    width,
                    knowledge.classes,
                    convolutions=self.convolutions,
                ),
                images,
                shares,
                divergence if self.loss == "corrected" else published_loss,
                self._schedule(),
                seed.child(self.name, *group.rounds),
                knowledge.means.device,
            )
            for target in group.targets:
                read = read_updates(view, target, knowledge, group.rounds, [CHANGE])
                claim = told(network, _images(read[CHANGE][None]))[0]
                if self.rounding:
                    claim = claim.round(decimals=CLAIM_DIGITS)
                claims[target] = LabelShares(normalised(claim).float())
        return claims

    def _schedule(self) -> FitSchedule:
        return FitSchedule(self.epochs, self.batch, self.rate, self.slow_after)


def rounded_shares(
    shares: Float[Tensor, "clients classes"],
) -> Float[Tensor, "clients classes"]:
    """Shares to 2 digits, where the last class takes what is left of 1, if anything is."""
    first = shares[:, :-1].round(decimals=SHARE_DIGITS)
    return torch.cat([first, (1 - first.sum(1, keepdim=True)).clamp(min=0)], 1)


def published_loss(
    logits: Float[Tensor, "clients classes"], shares: Float[Tensor, "clients classes"]
) -> Float[Tensor, ""]:
    """Mean over clients and classes of  s (ln s - p), with p rounded to 3 digits.

    Rounding lets the slope through as if it were not there.
    """
    exact = logits.softmax(1)
    rounded = exact + (exact.detach().round(decimals=CLAIM_DIGITS) - exact.detach())
    lost: Tensor = torch.special.xlogy(shares, shares) - shares * rounded
    return lost.mean()


def _images(
    change: Float[Tensor, "clients rounds classes columns"],
) -> Float[Tensor, "clients rounds params"]:
    """Without the last column, the bias, which the paper leaves out."""
    return change[..., :-1].flatten(2)
