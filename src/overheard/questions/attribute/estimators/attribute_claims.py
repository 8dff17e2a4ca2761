"""What the updates of each sender say together of an attribute."""

from collections.abc import Mapping

from jaxtyping import Float
from torch import Tensor

from overheard.core.parties import Party
from overheard.linkage.attribute_labels import AttributeLabels
from overheard.linkage.prior_updates import SentUpdates
from overheard.questions.attribute.claim import Attribute


def attribute_claims(
    labels: AttributeLabels,
    sent: SentUpdates,
    log_probabilities: Float[Tensor, "updates values"],
) -> Mapping[Party, Attribute]:
    """Claim the attribute of each sender from all of its updates.

    Probabilities are those whose logarithm is, up to what makes them sum to 1, the mean over
    the sender's updates: updates of one device are no independent witnesses.
    """
    return {
        sender: Attribute(
            labels.attribute, labels.values, log_probabilities[rows].mean(0).softmax(0)
        )
        for sender, rows in sent.rows().items()
    }
