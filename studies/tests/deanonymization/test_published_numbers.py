import pytest

from overheard_studies.deanonymization.published_numbers import (
    published_attribute_accuracy,
    published_depth_precision,
    published_in_text,
    published_reidentification,
    published_user_count,
    published_utility,
)


def test_times_chance_of_table_3_is_precision_times_the_number_of_users() -> None:
    # PIPA, random: 0.910 times 53 users is 48.2; Yelp, chronological: 0.160 times 118 is 18.9.
    for data, prior in (("pipa", "random"), ("yelp", "chronological"), ("blog", "random")):
        for attack in ("reidentify_mlp", "reidentify_svm", "reidentify_knn"):
            precision = published_reidentification(
                data, prior, attack, "mean_average_precision"
            )
            times = published_reidentification(data, prior, attack, "times_chance")
            assert precision is not None
            assert times == pytest.approx(precision * published_user_count(data), abs=1.0)


def test_published_federated_models_reach_80_percent_of_the_centralized_ones() -> None:
    for data in ("pipa", "openimages", "blog"):
        for prior in ("random", "chronological"):
            federated = published_utility(data, prior, "federated")
            centralized = published_utility(data, prior, "centralised")
            assert federated is not None
            assert centralized is not None
            assert 0.8 < federated / centralized < 1


def test_missing_published_values_are_none() -> None:
    assert published_utility(None, "random", "federated") is None
    assert published_utility("blog", "chronological_within_labels", "federated") is None
    assert published_reidentification("blog", "random", "reidentify_plda", "top1") is None
    assert published_attribute_accuracy("alphabet", "attribute_single") is None
    assert published_depth_precision("pipa", "embedding") is None


def test_published_identity_accuracy_is_higher_jointly_with_an_attribute() -> None:
    alone = published_attribute_accuracy("identity", "identity_single")
    joint = published_attribute_accuracy("gender", "identity_joint")
    assert alone is not None
    assert joint is not None
    assert joint > alone


def test_the_published_decrease_of_mm_aug_is_three_quarters() -> None:
    assert published_in_text("mm_aug_decrease") == 0.75
    assert published_in_text("iid_times_chance") == 1.5
