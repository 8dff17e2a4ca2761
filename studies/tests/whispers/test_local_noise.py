import pytest

from overheard_studies.whispers.setting import CLIP, build_noise_arm, noise_deviation


def test_the_noise_is_that_of_the_formula() -> None:
    # 2 x 4 / 4000 x sqrt(2 x 0.5 x 200 x ln 1000) / 1 = 0.002 x sqrt(1381.55) = 0.0743
    assert noise_deviation(1.0) == pytest.approx(0.07434, abs=1e-5)


def test_twice_the_epsilon_is_half_the_noise() -> None:
    assert noise_deviation(2.0) == pytest.approx(noise_deviation(1.0) / 2)


def test_the_arm_adds_noise_of_this_deviation() -> None:
    (defense,) = build_noise_arm(5.0).defenses
    assert defense.clip == CLIP
    assert defense.noise_multiplier * defense.clip == pytest.approx(noise_deviation(5.0))
    assert build_noise_arm(5.0).name == "epsilon 5"
