"""Membership by the whitened gradient of each record: a matched filter by Kronecker factors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.core.attack import Attack
from overheard.core.defense import TrainingPart
from overheard.core.knowledge import Knowledge
from overheard.core.needs import BROADCASTS, CANDIDATES, MODEL, RECIPE, UPDATES
from overheard.core.parties import COHORT, Party
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.settings import Positive
from overheard.core.view import View
from overheard.questions.membership.claim import Membership
from overheard.questions.membership.estimators.record_logits import rounds_to_read
from overheard.simulation.gradient_evidence import check_trained, compute_gradient_evidence
from overheard.simulation.whitening import log_likelihood_ratios

MAX_RATIO = 1e30
"""Log-likelihood ratios are clamped to this magnitude, within the range of float32."""


@final
@dataclass(frozen=True, slots=True)
class WhitenedMembership(Attack[Membership]):
    """How well the update points along each record's gradient, in whitened axes.

    Local training adds minus the gradients of its examples, so an update is a sum of gradients.
    In most directions all gradients vary much; there a record's own gradient drowns in the sum.
    In others they vary little, and there it shows. So the inner product of update and gradient
    is weighted by the inverse covariance of the update: a matched filter. Of a layer this
    covariance is about a Kronecker product of two small matrices, one of inputs and one of
    output gradients. Auxiliary and candidate records show both, without shadow models.

    The kin of this test, and what differs:

    - GLiR (Leemann et al. 2023) is the likelihood ratio of one step's gradient, with the full
      covariance of a few layers. Here the covariance is factored, and updates of many steps are
      read: gradients are averaged over the way from broadcast to update.
    - FedMIA (Zhu et al. 2025) takes the cosine, without a covariance, and the other clients in
      place of auxiliary records.
    - K-FAC (Martens and Grosse 2015) uses these factors for the natural gradient, to train; the
      variances along their eigenvectors are those of EK-FAC (George et al. 2018).
    - `gradient_membership` has the covariance of 256 trained shadow models, whose rank is 256.

    It reads all layers. Of an embedding, of a norm and of other vectors the covariance of rows
    is diagonal: no row says anything of another one. What adaptive optimizers
    divide by is estimated, from the gradients' mean squares. Records whose gradients are large
    in directions where others have none are readable where the mean record is not:
    `Membership.strength` says which, before any truth.

    Args:
        most_rounds: maximum number of rounds to read, evenly spaced from first to last.
        joint: whether records are claimed together: each is read in what likely members among
            the others leave of the update. In a sum of many clients they hide each other most.
            It takes up to twice the time.

    """

    most_rounds: Positive = 5
    joint: bool = True

    name: ClassVar[str] = "whitened_membership"
    claim_type: ClassVar = Membership
    needs: ClassVar = frozenset({UPDATES, BROADCASTS, MODEL, RECIPE, CANDIDATES})
    source: ClassVar[str] = (
        "Overheard, based on Leemann et al. 2023 (Gaussian Membership Inference Privacy, "
        "NeurIPS): the likelihood ratio of gradients; and on Martens and Grosse 2015 "
        "(Optimizing Neural Networks with Kronecker-factored Approximate Curvature, ICML)"
    )

    def used_training_parts(self) -> frozenset[TrainingPart]:
        """Return the parts of the known training that its claims depend on.

        After an adaptive optimizer they depend on the batch too, which no defense changes.
        """
        return frozenset({"loss"})

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Membership]:
        """Claim the log-likelihood ratio of each record.

        Raises:
            NeedsError: if a target's update is none of a trained model.

        """
        assert knowledge.recipe is not None
        rounds_of = rounds_to_read(view, targets, self.most_rounds)
        for target, rounds in rounds_of.items():
            check_trained(view, target, rounds)
        senders = {
            number: [target for target in targets if number in rounds_of[target]]
            for number in sorted({number for rounds in rounds_of.values() for number in rounds})
        }
        evidence = compute_gradient_evidence(view, knowledge, senders, joint=self.joint)
        claims = {}
        for target, rounds in rounds_of.items():
            found = [evidence[one].of_sender(senders[one].index(target)) for one in rounds]
            ratios = log_likelihood_ratios(found).clamp(-MAX_RATIO, MAX_RATIO)
            strength = None
            if target != COHORT:
                updates = view.updates(target)
                strength = largest_scores(
                    [
                        evidence[one].first_strength[senders[one].index(target)]
                        for one in rounds
                    ],
                    [updates[one].examples for one in rounds],
                    knowledge.recipe,
                )
            claims[target] = Membership(ratios.float(), strength=strength)
        return claims


def largest_scores(
    strengths: Sequence[Float[Tensor, " records"]],
    examples: Sequence[int | None],
    recipe: Recipe,
) -> Float[Tensor, " records"] | None:
    """Return how many standard deviations each record's fit is above that of non-members.

    Its square is the sum of s^2 S over rounds, for the strength S and the weight s of a
    record's gradient in an update. It is an upper envelope of this test at the broadcast: s is
    that of SGD without clipping, and gradients change while a model trains. None if steps are
    adaptive or private, so that nothing says s.

    Args:
        strengths: S by round.
        examples: number of the client's examples by round; None = it does not say.
        recipe: the training of clients.

    """
    if recipe.optimizer != "sgd" or recipe.private_steps is not None:
        return None
    weights = [gradient_weight(recipe, count) for count in examples]
    squares = [s**2 * one for s, one in zip(weights, strengths, strict=True)]
    return torch.stack(squares).sum(0).sqrt().float()


def gradient_weight(recipe: Recipe, examples: int | None) -> float:
    """Return the mean weight of a record's gradient in an update, for SGD with full batches.

    A step takes a record with the rate over the size of its batch. With momentum m, later steps
    repeat it: step t of T adds 1 + m + ... + m^(T - t) times that, and all t are as likely.

    Args:
        recipe: the training.
        examples: number of the client's examples, as it says; None, and what is no number of
            examples, is taken as more than a batch, with many steps.

    """
    momentum = recipe.momentum
    batch, repeats = recipe.batch, 1 / (1 - momentum)
    if examples is not None and examples > 0:
        batch, steps = recipe.batch_size(examples), recipe.steps(examples)
        repeats *= 1 - momentum * (1 - momentum**steps) / ((1 - momentum) * steps)
    return recipe.rate * recipe.epochs / batch * repeats
