"""DP-SGD: clients clip the gradient of each example, and add noise in each local step."""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, final

from annotated_types import Ge, Gt, Lt

from overheard.core.accounting.accountant import account_mechanism, format_epsilon
from overheard.core.defense import Defense, LocalTraining, RunParameters, TrainingPart
from overheard.core.mechanism import Mechanism, Site
from overheard.core.recipe import LARGEST_FLOAT32, BatchSampling, PrivateSteps
from overheard.core.settings import Positive


@final
@dataclass(frozen=True, slots=True)
class DpSgd(Defense):
    """Each client trains by DP-SGD, the mechanism of Opacus, which protects single examples.

    In each local step the gradient of each example is clipped to an L2 norm of `clip` over all
    parameters. Their sum gets a Gaussian of standard deviation `noise_multiplier * clip` and is
    divided by the expected size of a batch; then the optimizer of the plan takes its step. An
    epoch has `batches` steps for every client, in place of batches of `training.batch`
    examples, so that all clients have the same epsilon. A batch without examples is a step of
    noise alone.

    The unit of privacy is one example of a client, not all its data: what many of its examples
    have in common, such as their labels, is not hidden. Epsilon grows with rounds, epochs and
    batches. `Update.examples` is sent in the clear, and the promise takes the number of
    examples as public. With noise, simulated clients send no losses. There is no
    promise beside a defense that repeats examples (`Defense.repeats_examples`), as
    `class_balanced` does. A model with a batch norm is refused, because examples of a batch
    then have no gradients of their own. Recurrent networks and embeddings take one pass for
    each example, so they are slow.

    The noise is floating-point and comes from a seeded generator, which suits an audit but not
    production (Mironov 2012).

    Args:
        clip: largest L2 norm of the gradient of an example.
        noise_multiplier: standard deviation of the noise, in units of `clip`; 0 = clip only.
        delta: delta of the promise; should be well below 1 / number of a client's examples.
        batches: steps of an epoch, so that a step has 1 / batches of a client's examples.
        sampling: how the batches of an epoch are drawn: "poisson", each example by itself with
            probability 1 / batches, or "shuffled", each example once an epoch, for which
            epsilon has no amplification by sampling. Shuffled batches have about equal sizes,
            so the promise is for an example whose place in its batch stays empty if it is
            removed, and not for batches that close the gap with other examples.

    """

    clip: Annotated[float, Gt(0), Lt(LARGEST_FLOAT32)] = 1.0
    noise_multiplier: Annotated[float, Ge(0), Lt(LARGEST_FLOAT32)] = 1.0
    delta: Annotated[float, Gt(0), Lt(1)] = 1e-5
    batches: Positive = 10
    sampling: BatchSampling = "poisson"

    name: ClassVar[str] = "dp_sgd"
    source: ClassVar[str] = (
        "Abadi et al. 2016 (CCS), Algorithm 1, with the divisor and the Poisson batches of "
        "Opacus (Yousefpour et al. 2021, arXiv 2109.12298)"
    )
    enforced_at: ClassVar[Site] = "client"
    switched_off_by: ClassVar[str] = "each client, for itself"
    changes_training: ClassVar[frozenset[TrainingPart]] = frozenset({"steps"})

    def on_training(self, training: LocalTraining) -> LocalTraining:
        """Return the same training with the steps of DP-SGD.

        Raises:
            PlanError: when clients train, if the model has a batch norm or other buffers.

        """
        private = PrivateSteps(self.clip, self.noise_multiplier, self.batches, self.sampling)
        return replace(training, recipe=replace(training.recipe, private_steps=private))

    def mechanism(self) -> Mechanism:
        """Return the mechanism of an epoch: noise at the client in each of its steps.

        One example more or less changes the sum of a step by at most `clip`.
        """
        return Mechanism(
            self.noise_multiplier,
            self.clip,
            self.delta,
            "client",
            "client",
            moves=1.0,
            unit="record",
            steps=self.batches,
            record_sampling=self.sampling,
            record_rate=1 / self.batches,
        )

    def promise(self, run: RunParameters) -> str:
        """State the epsilon of an example of a client that takes part in every round.

        There is no amplification by sampling clients, because the adversary is the server,
        which knows who was sampled. Without `dp-accounting` the text says that no epsilon was
        computed, and how to install it.
        """
        if self.noise_multiplier == 0:
            return (
                f"clipping of each example's gradient only (clip {self.clip:g}): no formal "
                "promise (epsilon infinite)"
            )
        mechanism = self.mechanism().in_round(run.epochs, repeats_examples=run.repeats_examples)
        removed = account_mechanism(mechanism, run)
        replaced = account_mechanism(replace(mechanism, moves=2.0), run)
        if removed.recomputed is None or replaced.recomputed is None:
            epsilons = f"epsilon not computed ({removed.doubt})"
        else:
            epsilons = (
                f"epsilon {format_epsilon(removed.recomputed.pld)} if one example of a user (a "
                f"client) is {mechanism.relation_words}, "
                f"{format_epsilon(replaced.recomputed.pld)} if it is replaced by another"
            )
        is_poisson = self.sampling == "poisson"
        sampling = "Poisson" if is_poisson else "shuffled, so not counted: one draw an epoch"
        return (
            f"{epsilons}, at delta {self.delta:g}. Gaussian mechanism in each local step at "
            f"each client, clip {self.clip:g} (L2, gradient of an example), noise multiplier "
            f"{self.noise_multiplier:g}, sampling rate 1/{self.batches} ({sampling}), "
            f"{mechanism.steps} steps a round, {run.rounds} rounds, accountant dp-accounting "
            f"{'PLD' if is_poisson else 'closed form'}. The client takes part in every round. "
            "Several examples, such as parts of one text, are not covered together. "
            "Example counts and metrics stay in clear text and are not covered"
        )
