from math import inf, nan
from pathlib import Path

import pytest

from overheard.archive.layout import seconds_path, transcript_folder, truth_path
from overheard.archive.run_time import RunTime, read_run_time, write_run_time
from overheard.core.errors import TranscriptError


def test_run_times_are_read_exactly_as_written(tmp_path: Path) -> None:
    for seconds in (RunTime(0.1 + 0.2, 1 / 3), RunTime(7.0, None)):
        write_run_time(tmp_path / "run", seconds)
        assert read_run_time(tmp_path / "run") == seconds


def test_is_stored_outside_of_transcript_and_truth() -> None:
    run = Path("run")
    assert seconds_path(run).parent == run
    assert seconds_path(run) != truth_path(run)
    assert not seconds_path(run).is_relative_to(transcript_folder(run))


def test_an_unmeasured_run_time_is_none(tmp_path: Path) -> None:
    assert read_run_time(tmp_path) is None


def test_a_sum_with_an_unmeasured_processor_time_is_unmeasured() -> None:
    assert RunTime(1.0, 0.5) + RunTime(2.0, 0.25) == RunTime(3.0, 0.75)
    assert RunTime(1.0, 0.5) + RunTime(2.0, None) == RunTime(3.0, None)
    assert RunTime(1.0, None) + RunTime(2.0, 0.5) == RunTime(3.0, None)


@pytest.mark.parametrize(("wall", "cores"), [(-0.1, 0.0), (1.0, -0.1), (nan, None), (1.0, inf)])
def test_refuses_negative_and_infinite_times(wall: float, cores: float) -> None:
    with pytest.raises(ValueError, match=r"must be (0 or more|a finite number)"):
        RunTime(wall, cores)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        '{"wall": 1.0}',
        '{"wall": -1.0, "cores": 1.0}',
        '{"wall": NaN, "cores": 1.0}',
        '{"wall": 1e999, "cores": null}',
        '{"wall": 1.0, "wall": 2.0, "cores": null}',
        '{"wall": "1.0", "cores": null}',
        '{"wall": 1.0, "cores": null, "seed": 3}',
        "\xff\xfe",
    ],
)
def test_a_damaged_file_is_reported_with_a_remedy(tmp_path: Path, content: str) -> None:
    seconds_path(tmp_path).write_bytes(content.encode("latin-1"))
    with pytest.raises(TranscriptError, match=r"seconds\.json is damaged: .*delete it"):
        read_run_time(tmp_path)


def test_a_folder_in_its_place_is_reported(tmp_path: Path) -> None:
    seconds_path(tmp_path).mkdir()
    with pytest.raises(TranscriptError, match=r"seconds\.json cannot be read"):
        read_run_time(tmp_path)
