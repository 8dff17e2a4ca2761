"""Which members stand out from non-members, with few false discoveries."""

import numpy as np

from overheard.questions.membership.statistics.exposed_records import find_exposed_records


def numbers(scores, kinds, rate: float) -> list[int]:
    return [one.record for one in find_exposed_records(scores, kinds, rate)]


def test_a_later_p_value_that_passes_lists_all_before_it() -> None:
    # 19 non-members: p-values .05, .10 and .10 of the members 0, 1, 2, as one non-member is
    # above the last two. Of three, .1 times 1/3 and 2/3 are below the first two; 3/3 is not.
    scores = [30.0, 18.5, 18.2, *map(float, range(1, 20))]
    kinds = [1, 1, 1, *[-1] * 19]
    assert numbers(scores, kinds, 0.1) == [0, 1, 2]
    assert numbers(scores, kinds, 0.09) == []


def test_records_of_other_clients_are_never_listed_and_ties_count_as_above() -> None:
    assert numbers([9.0, 9.0, 1.0], [0, 1, -1], 0.5) == [1]
    assert numbers([9.0, 9.0, 9.0], [0, 1, -1], 0.9) == []


def test_few_listed_records_are_false_discoveries() -> None:
    generator, shares, found = np.random.default_rng(0), [], 0
    for _ in range(200):
        # 30 members of whom the attack sees nothing, and 30 of whom it sees much.
        scores = generator.normal(size=260)
        scores[30:60] += 3
        listed = numbers(scores.tolist(), [*[1] * 60, *[-1] * 200], 0.2)
        shares.append(sum(one < 30 for one in listed) / max(len(listed), 1))
        found += sum(one >= 30 for one in listed)
    # At most .2, with a standard error of about .005; half of the members count as null.
    assert np.mean(shares) < 0.12
    assert found / 200 > 20
