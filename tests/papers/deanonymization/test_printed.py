import pytest

from overheard.papers.deanonymization.printed import (
    at_depth,
    reidentified,
    said,
    told_attribute,
    users_of,
    utility,
)


def test_times_chance_of_table_3_are_precisions_over_1_by_the_number_of_users() -> None:
    # PIPA, random: 0.910 times 53 users is 48.2; Yelp, chronological: 0.160 times 118 is 18.9.
    for data, prior in (("pipa", "random"), ("yelp", "chronological"), ("blog", "random")):
        for attack in ("reidentify_mlp", "reidentify_svm", "reidentify_knn"):
            precision = reidentified(data, prior, attack, "mean_average_precision")
            times = reidentified(data, prior, attack, "times_chance")
            assert precision is not None
            assert times == pytest.approx(precision * users_of(data), abs=1.0)


def test_the_paper_says_that_federated_models_keep_80_percent_of_the_centralised_ones() -> None:
    for data in ("pipa", "openimages", "blog"):
        for prior in ("random", "chronological"):
            federated = utility(data, prior, "federated")
            whole = utility(data, prior, "centralised")
            assert federated is not None
            assert whole is not None
            assert 0.8 < federated / whole < 1


def test_what_the_paper_does_not_have_is_none() -> None:
    assert utility(None, "random", "federated") is None
    assert utility("blog", "chronological_within_labels", "federated") is None
    assert reidentified("blog", "random", "reidentify_plda", "top1") is None
    assert told_attribute("alphabet", "attribute_single") is None
    assert at_depth("pipa", "embedding") is None


def test_who_it_is_is_told_better_beside_an_attribute_in_print() -> None:
    alone = told_attribute("identity", "identity_single")
    beside = told_attribute("gender", "identity_joint")
    assert alone is not None
    assert beside is not None
    assert beside > alone


def test_mm_aug_lowers_the_attack_by_three_quarters_in_print() -> None:
    assert said("mm_aug_decrease") == 0.75
    assert said("iid_times_chance") == 1.5
