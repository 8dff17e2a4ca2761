"""A distribution that misses a file is found; commands that fail are told."""

import sys
import zipfile
from pathlib import Path

import overheard
from overheard.plans.plan import parse_plan
from versions.release_check import TINY_PLAN, missing_files, run_in


def test_names_each_file_that_a_wheel_misses(tmp_path: Path):
    source = Path(overheard.__file__).parent.parent
    wheel = tmp_path / "overheard.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path in source.rglob("*"):
            if path.is_file() and path.name != "py.typed":
                archive.write(path, path.relative_to(source))
    assert missing_files(wheel) == ["overheard.whl: overheard/py.typed is missing"]


def test_the_plan_of_the_check_is_a_plan():
    assert parse_plan(TINY_PLAN, "the tiny plan").seeds == (0,)


def test_a_command_that_fails_is_told_with_its_end(tmp_path: Path):
    code = "import sys; print('why'); sys.exit(3)"
    assert run_in(tmp_path, [sys.executable, "-c", code]).startswith("exit 3\nwhy")
    assert run_in(tmp_path, [sys.executable, "-c", "print(1)"]) == ""
