"""A distribution that misses a file is found."""

import zipfile
from pathlib import Path

from noxfile import TINY_PLAN, missing_files

import overheard
from overheard.plans.plan import parse_plan


def test_names_each_file_that_a_wheel_misses(tmp_path: Path):
    source = Path(overheard.__file__).parent.parent
    wheel = tmp_path / "overheard.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path in source.rglob("*"):
            if path.is_file() and path.name != "py.typed":
                archive.write(path, path.relative_to(source))
    assert missing_files(wheel) == ["overheard/py.typed"]


def test_the_plan_of_the_release_is_a_plan():
    assert parse_plan(TINY_PLAN, "the tiny plan").seeds == (0,)
