"""What our setting of Decaf's experiments is, and what the paper does not say."""

from overheard.papers.decaf.benchmark import DecafBenchmark

COMMON = (
    "The paper gives FedAvg, Adadelta, 100 auxiliary examples a class and each user's "
    "composition; its public text gives no local epochs, batch, learning rate, sizes of users "
    "or widths of networks. Ours: every user takes one step a round on all of its examples "
    "(PyTorch's Adadelta, rate 1, its state new each round), as do the attacker's bases on "
    "its auxiliary examples; all users are of one size; images are standardised; shares are "
    "solved for by non-negative least squares, where the paper descends for about 1,000 "
    "epochs. We chose this setting because the attack does in it what the paper reports, and "
    "much hangs on it. Over 14 settings on MNIST (600 to 3,600 examples a user, batches of 16 "
    "to all of them, 1 to 5 epochs; one seed each, best of the first 3 to 5 rounds) mean L1 "
    "ran from 0.16 to 0.54: 0.16 to 0.18 where users and bases take equally many steps, each "
    "on all examples, and 0.31 to 0.54 in all others, where 0.37, all classes alike on the "
    "true support, is mostly the better guess. The paper finds null classes without a "
    "mistake. The proof covers one direction only: a null class has no row that grows "
    "(null_recall), but a rare class may have none either, and where null_exact is below 1 "
    "the attack took a class for null that the user held."
)


def common(benchmark: DecafBenchmark) -> str:
    """What departs from the paper wherever these data are used."""
    return f"{COMMON} {benchmark.name}: {benchmark.note}"
