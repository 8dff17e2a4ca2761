from overheard_studies.whispers.benchmark import AG_NEWS, MNIST
from overheard_studies.whispers.differences import common_differences


def test_each_data_set_adds_its_note_once() -> None:
    description = common_differences([AG_NEWS, MNIST, AG_NEWS])
    assert description.count(AG_NEWS.note) == 1
    assert common_differences([MNIST]) in description
