"""Attribute claims from all updates of each sender."""

from collections.abc import Mapping

from jaxtyping import Float
from torch import Tensor

from overheard.core.parties import Party
from overheard.linkage.attribute_labels import AttributeLabels
from overheard.linkage.known_updates import SenderUpdates
from overheard.questions.attribute.claim import Attribute


def pool_attribute_claims(
    labels: AttributeLabels,
    sent: SenderUpdates,
    log_probabilities: Float[Tensor, "updates values"],
) -> Mapping[Party, Attribute]:
    """Claim the attribute of each sender from all of its updates.

    The logarithms of the probabilities are averaged over the sender's updates and normalised.
    They are not summed, as updates of one device are not independent.
    """
    return {
        sender: Attribute(
            labels.attribute, labels.values, log_probabilities[rows].mean(0).softmax(0)
        )
        for sender, rows in sent.rows_by_sender().items()
    }
