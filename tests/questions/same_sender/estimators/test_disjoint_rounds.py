import torch

from overheard.core.parties import Party
from overheard.questions.same_sender.estimators.disjoint_rounds import compare_senders

CROWD = (Party("anon/a"), Party("anon/b"), Party("anon/c"))


def test_scores_senders_of_other_rounds_by_the_mean_over_all_pairs() -> None:
    # a sends in rounds 0 and 1, b in round 1 too, c in rounds 2 and 3.
    senders, rounds = torch.tensor([0, 0, 1, 2, 2]), torch.tensor([0, 1, 1, 2, 3])
    evidence = torch.tensor([[9.0, 9.0, 9.0, 1.0, 2.0], [9.0, 9.0, 9.0, 3.0, 6.0]])
    claim = compare_senders("link", CROWD, senders, rounds, torch.tensor([0, 1]), evidence)
    assert claim.others == ("anon/c",)
    # The four pairs have 1, 2, 3 and 6, with mean 3.
    assert claim.scores.tolist() == [3.0]
