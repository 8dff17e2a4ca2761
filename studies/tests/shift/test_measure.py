from overheard_studies.shift.setting import ACCURACY, LEAKAGE_SOURCES, LOSS, source_of_leakage


def test_every_source_has_a_unique_name_and_key() -> None:
    measures = (*LEAKAGE_SOURCES, LOSS, ACCURACY, source_of_leakage("weights", "cmd", "2"))
    # Three kinds of information by three metrics.
    assert len(LEAKAGE_SOURCES) == 9
    assert len({one.key for one in measures}) == len(measures)
    assert len({one.name for one in measures}) == len(measures)
    assert len({one.attack for one in measures}) == len(measures)


def test_the_standardized_trend_has_the_length_of_the_attacks() -> None:
    assert LOSS.trend.rounds == LOSS.standardized_trend.rounds == LOSS.attack.trend
    assert LOSS.standardized_trend.standardise
    assert not LOSS.trend.standardise
