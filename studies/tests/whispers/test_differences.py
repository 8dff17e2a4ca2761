from overheard_studies.whispers.setting import AG_NEWS, MNIST, iid_scenario
from overheard_studies.whispers.studies import table


def test_each_data_set_adds_its_note_once() -> None:
    scenarios = tuple(map(iid_scenario, (AG_NEWS, MNIST, AG_NEWS)))
    assert table("table2", "", scenarios).differences.count("AG-News: The data folder") == 1
