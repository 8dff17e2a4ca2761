"""The matrix reports what ran, runs again what changed, and its table is the page's."""

import sys
from pathlib import Path

import pytest

from versions import matrix
from versions.matrix import (
    PAGE,
    ROWS,
    MatrixResult,
    MatrixRow,
    matrix_table,
    page_with_table,
    read_results,
    run_tests,
    without_packages,
)

RESULT = MatrixResult(
    "3.13.0",
    {"flwr": "1.42.0", "nvflare": "2.9.0", "torch": "2.13.0", "numpy": "2.4.6"},
    "recorders",
    190,
    0,
    3,
    60,
    "2026-11-23",
    "0f",
)


def test_the_page_has_the_table_of_the_last_results():
    page = PAGE.read_text(encoding="utf-8")
    assert page == page_with_table(page, read_results())
    assert set(read_results()) <= {row.name for row in ROWS}


def test_a_row_of_the_table_says_what_ran():
    last = matrix_table([RESULT]).splitlines()[-1]
    assert last == (
        "| 3.13.0 | 1.42.0 | 2.9.0 | 2.13.0 | 2.4.6 | recorders | 190 | 0 | 3 | 2026-11-23 |"
    )


def test_a_page_keeps_the_text_around_its_table():
    page = f"# Head\n{matrix.BEGIN}old\n{matrix.END}tail\n"
    written = page_with_table(page, {"one": RESULT})
    assert "old" not in written
    assert written.startswith(f"# Head\n{matrix.BEGIN}")
    assert written.endswith(f"{matrix.END}tail\n")


def test_a_row_drops_the_locks_version_of_its_packages(tmp_path: Path):
    lock = tmp_path / "lock.txt"
    lock.write_text(
        "certifi==1\nflwr==1.41.0 ; os_name == 'posix'\nflwr-datasets==2\nrich==14\n"
    )
    kept = list(without_packages(lock, ("flwr==1.42.0", "certifi>=2", "rich<14")))
    assert kept == ["flwr-datasets==2\n"]


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Run no row in truth, and list those that would."""
    names = list[str]()

    def run(row: MatrixRow, digest: str) -> MatrixResult | None:
        names.append(row.name)
        if row.python == "3.14":
            return None
        failed = int(row.python == "3.12")
        return MatrixResult(row.python, RESULT.versions, "x", 1, failed, 0, 1, "d", digest)

    page = tmp_path / "page.md"
    page.write_text(matrix.BEGIN + matrix.END)
    for name, value in (("run_row", run), ("RESULTS", tmp_path / "r.json"), ("PAGE", page)):
        monkeypatch.setattr(matrix, name, value)
    return names


def test_rows_that_passed_with_the_same_code_do_not_run_again(ran: list[str]):
    assert matrix.main([]) == 1
    assert ran == [row.name for row in ROWS]
    ran.clear()
    matrix.main([])
    assert ran == [row.name for row in ROWS if row.python in ("3.12", "3.14")]
    ran.clear()
    matrix.main(["3.13"])
    assert ran == ["3.13"]
    assert matrix.main(["3.9"]) == 2


def test_counts_what_passed_failed_and_was_skipped(tmp_path: Path):
    tests = tmp_path / "test_three.py"
    tests.write_text(
        "import pytest\n"
        "def test_good(): pass\n"
        "def test_bad(): assert False\n"
        "def test_none(): pytest.skip()\n"
    )
    options = ("-n", "0", "-c", "/dev/null", "-p", "no:jaxtyping", str(tests))
    assert run_tests(Path(sys.executable), options, tmp_path / "report.xml") == (1, 1, 1)
    broken = (*options, "--no-such-option")
    assert run_tests(Path(sys.executable), broken, tmp_path / "none.xml") == (0, 1, 0)
