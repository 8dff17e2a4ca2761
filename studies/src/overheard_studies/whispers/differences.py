"""The setting of Whispers' experiments, and what the paper does not say."""

from collections.abc import Iterable

from overheard_studies.whispers.benchmark import WhispersBenchmark

COMMON_DIFFERENCES = (
    "The paper gives the data sets, the splits, 1,200 virtual clients (900 for training, 300 "
    "for testing) of 3,000 to 5,000 examples, and four distances. Its public text gives no "
    "model, optimizer, learning rate, batch size, number of local epochs or rounds, and no "
    "settings of the inference network. The settings here are those of Gu and Bai's LDIA, "
    "whose code seems to be the basis of the experiments. They are SGD, momentum 0.9, weight "
    "decay 5e-4, batches of 128, and their network for MNIST, with two exceptions. The "
    "learning rate is 0.01 (0.1 for texts), as theirs of 0.001 hardly changes the model in "
    "ten rounds. There is one local epoch instead of five, which would take five times as "
    "long. Smaller clients have smaller batches, so that all take 10 to 40 steps per round. "
    "The paper's "
    "targets are the 300 virtual clients for testing, made from the same examples as the "
    "others. The targets here are the clients of a federation, which share no example with "
    "the attacker. Virtual clients have the same split and sizes as the real ones, which "
    "favours all attacks that use them. In full runs, whispers has the network that a tuning "
    "seed chose (benchmarks/whispers.py). It reads accuracies on 50 examples per class, which "
    "is far fewer than a public test set has. It estimates sizes by Algorithm 1; amortised "
    "and ramakrishna read them from the metadata of the updates. Weight decay violates the "
    "assumption of decaf's test for absent classes, and momentum changes the scale in "
    "ramakrishna's first equation. The form of ramakrishna that simulates momentum is "
    "therefore used (auxiliary_gradient); the paper does not say how it ran either. The "
    "attack of Zhou et al. infers the most frequent class. As in the paper, its class "
    "probabilities are taken as label shares here; that is hardly better than claiming equal "
    "shares. The uniform guess, which the paper leaves out, is reported for every setting."
)
"""The setting of all experiments, and how it differs from the paper's."""

MISPRINTS = (
    "Rows whose Wasserstein distance is below half of their L1 cannot be right and are "
    "marked. The text gives a KL of 0.0027 for MNIST at alpha 2, while Table 3 has 0.0075 "
    "(0.0027 is its JS of AG-News at alpha 1). The text also says that L1 falls by an order "
    "of magnitude, which Table 3 shows only against Zhou et al."
)
"""Contradictions within the paper."""


def common_differences(benchmarks: Iterable[WhispersBenchmark]) -> str:
    """Describe the differences from the paper for these data sets."""
    notes = [f"{one.name}: {one.note}" for one in dict.fromkeys(benchmarks) if one.note]
    return " ".join([COMMON_DIFFERENCES, *notes])
