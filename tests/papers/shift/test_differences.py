from overheard.papers.shift.differences import common, supply
from overheard.papers.shift.world import CENSUS, MNIST


def test_it_says_how_many_exchanges_the_data_have_room_for() -> None:
    # 60,000 - 1,000 - 13,400 = 45,600 hold 13,400 three times.
    assert "enough for 3 exchanges" in supply(MNIST)
    # 32,561 - 4,000 - 7,800 = 20,761 hold 7,800 twice.
    assert "enough for 2 exchanges" in supply(CENSUS)


def test_what_the_paper_leaves_out_is_said() -> None:
    for word in ("batch", "trend", "pooling", "Adam", "control", "Procrustes"):
        assert word in common(MNIST)
