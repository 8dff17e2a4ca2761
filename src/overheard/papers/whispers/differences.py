"""What our setting of Whispers' experiments is, and what the paper does not say."""

from collections.abc import Iterable

from overheard.papers.whispers.benchmark import WhispersBenchmark

COMMON = (
    "The paper gives the data sets, the splits, 1,200 virtual clients (900 teach, 300 test) of "
    "3,000 to 5,000 examples, and four distances. Its public text gives no model, optimizer, "
    "learning rate, batch, number of local epochs or rounds, and no settings of the inference "
    "network. Ours are those of Gu and Bai's LDIA, from whose code the experiments seem to "
    "descend (SGD, momentum 0.9, weight decay 5e-4, batches of 128, their network for MNIST), "
    "but for the learning rate, 0.01 (0.1 for texts) where theirs of 0.001 hardly trains in "
    "ten rounds, and for one local epoch in place of five, which would cost five times as "
    "much. Smaller clients have smaller batches, so that all take 10 to 40 steps a round. "
    "The paper's targets are the 300 virtual clients that do not teach, made from the same "
    "examples as the others; ours are the clients of a federation, who share no example with "
    "the attacker. Virtual clients are made by the very split and sizes of the real ones, "
    "which flatters all who use them; whispers estimates sizes by Algorithm 1, whereas "
    "amortised and ramakrishna read them beside the updates. "
    "Weight decay breaks the premise of decaf's test for null classes, and momentum the scale "
    "of ramakrishna's first equation, for which the one that imitates momentum stands here "
    "(form auxiliary_gradient); how the paper ran either is not told. "
    "Zhou et al. ask for the most frequent class; their probabilities taken for shares, as in "
    "the paper, are hardly better than claiming all classes alike. "
    "The uniform guess, which the paper leaves out, stands beside every setting."
)

MISPRINTS = (
    "Rows whose Wasserstein distance lies below half of their L1 cannot be right and are "
    "marked. The text gives a KL of 0.0027 for MNIST at alpha 2 where Table 3 has 0.0075 "
    "(0.0027 is its JS of AG-News at alpha 1), and says that L1 falls by an order of "
    "magnitude, which Table 3 shows against Zhou et al. alone."
)


def common(benchmarks: Iterable[WhispersBenchmark]) -> str:
    """What departs from the paper wherever these data are used."""
    notes = [f"{one.name}: {one.note}" for one in dict.fromkeys(benchmarks) if one.note]
    return " ".join([COMMON, *notes])
