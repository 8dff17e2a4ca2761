import pytest

from overheard_studies.deanonymization.setting import PUBLISHED


def test_times_chance_of_table_3_is_precision_times_the_number_of_users() -> None:
    # PIPA, random: 0.910 times 53 users is 48.2; Yelp, chronological: 0.160 times 118 is 18.9.
    for data, prior in (("pipa", "random"), ("yelp", "chronological"), ("blog", "random")):
        for attack in ("reidentify_mlp", "reidentify_svm_hard", "reidentify_knn"):
            scores = PUBLISHED.find("table3", data, prior, attack)
            users = PUBLISHED.number("users", data)
            expected = scores["mean_average_precision"] * users
            assert scores["times_chance"] == pytest.approx(expected, abs=1.0)


def test_published_federated_models_reach_80_percent_of_the_centralized_ones() -> None:
    for data in ("pipa", "openimages", "blog"):
        for prior in ("random", "chronological"):
            models = PUBLISHED.find("table2", data, prior)
            assert 0.8 < models["federated"] / models["centralised"] < 1


def test_missing_published_values_are_none() -> None:
    assert PUBLISHED.number("table2", None, "random", "federated") is None
    assert PUBLISHED.number("table3", "blog", "random", "reidentify_plda", "top1") is None
    assert PUBLISHED.number("table5", "pipa", "embedding") is None


def test_published_identity_accuracy_is_higher_jointly_with_an_attribute() -> None:
    alone = PUBLISHED.number("table4", "identity", "identity_single")
    joint = PUBLISHED.number("table4", "gender", "identity_joint")
    assert joint > alone


def test_the_published_decrease_of_mm_aug_is_three_quarters() -> None:
    assert PUBLISHED.number("text", "mm_aug_decrease") == 0.75


def test_the_published_svm_was_scored_by_its_decisions() -> None:
    # One user has 1 and all others share the rest: the four other places are a draw.
    for data in ("pipa", "openimages", "blog", "yelp"):
        others = PUBLISHED.number("users", data) - 1
        for prior in ("random", "chronological"):
            first, fifth = (
                PUBLISHED.number("table3", data, prior, "reidentify_svm_hard", score)
                for score in ("top1", "top5")
            )
            assert fifth == pytest.approx(first + (1 - first) * 4 / others, abs=0.02)
