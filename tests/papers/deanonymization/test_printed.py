import pytest

from overheard.papers.deanonymization.printed import (
    at_depth,
    reidentified,
    said,
    told_attribute,
    users_of,
    utility,
)


def test_times_chance_of_table_3_is_precision_times_the_number_of_users() -> None:
    # PIPA, random: 0.910 times 53 users is 48.2; Yelp, chronological: 0.160 times 118 is 18.9.
    for data, prior in (("pipa", "random"), ("yelp", "chronological"), ("blog", "random")):
        for attack in ("reidentify_mlp", "reidentify_svm", "reidentify_knn"):
            precision = reidentified(data, prior, attack, "mean_average_precision")
            times = reidentified(data, prior, attack, "times_chance")
            assert precision is not None
            assert times == pytest.approx(precision * users_of(data), abs=1.0)


def test_published_federated_models_reach_80_percent_of_the_centralized_ones() -> None:
    for data in ("pipa", "openimages", "blog"):
        for prior in ("random", "chronological"):
            federated = utility(data, prior, "federated")
            centralized = utility(data, prior, "centralised")
            assert federated is not None
            assert centralized is not None
            assert 0.8 < federated / centralized < 1


def test_missing_published_values_are_none() -> None:
    assert utility(None, "random", "federated") is None
    assert utility("blog", "chronological_within_labels", "federated") is None
    assert reidentified("blog", "random", "reidentify_plda", "top1") is None
    assert told_attribute("alphabet", "attribute_single") is None
    assert at_depth("pipa", "embedding") is None


def test_published_identity_accuracy_is_higher_jointly_with_an_attribute() -> None:
    alone = told_attribute("identity", "identity_single")
    joint = told_attribute("gender", "identity_joint")
    assert alone is not None
    assert joint is not None
    assert joint > alone


def test_the_published_decrease_of_mm_aug_is_three_quarters() -> None:
    assert said("mm_aug_decrease") == 0.75
    assert said("iid_times_chance") == 1.5
