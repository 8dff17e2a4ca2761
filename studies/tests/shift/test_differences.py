from overheard_studies.shift.setting import CENSUS, MNIST
from overheard_studies.shift.studies import differences


def test_the_differences_give_the_number_of_possible_exchanges() -> None:
    # 60,000 - 1,000 - 13,400 = 45,600 hold 13,400 three times.
    assert "enough for 3 exchanges" in differences(MNIST)
    # 32,561 - 4,000 - 7,800 = 20,761 hold 7,800 twice.
    assert "enough for 2 exchanges" in differences(CENSUS)


def test_the_differences_name_what_the_paper_leaves_out() -> None:
    for word in ("batch", "trend", "pooling", "Adam", "control", "Procrustes"):
        assert word in differences(MNIST)
