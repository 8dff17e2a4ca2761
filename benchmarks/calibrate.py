"""Count false and true verdicts in synthetic audits, and how often intervals cover.

    python benchmarks/calibrate.py --out DIR              the grid: an hour of one core
    python benchmarks/calibrate.py --out DIR --audits 40  a smoke test
    python benchmarks/calibrate.py --out DIR --report     the tables of existing results

Claims and truths are synthetic; the code that compares them is that of the questions. Each
cell of the grid is stored when it is done, so an interrupted run resumes with the same command.
Writes DIR/results.jsonl and DIR/tables.md. A cell is measured again if its line is deleted.
Exits with 1 if a bound of `_calibrate.cells` is broken.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from _calibrate.audits import draw_audit
from _calibrate.cells import AUDITS, AuditCell, null_cells, power_cells, share_cells
from _calibrate.intervals import FigureCell, draw_figures, draw_gains, figure_cells
from _calibrate.tables import CellResult, broken_bounds, markdown
from overheard.archive.atomic import write_text
from overheard.core.seeds import Seed

SEED = Seed(19)


def main() -> None:
    """Measure all missing cells and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of the results")
    parser.add_argument("--audits", type=int, default=AUDITS, help="audits of a cell")
    parser.add_argument("--report", action="store_true", help="measure nothing")
    request = parser.parse_args()
    request.out.mkdir(parents=True, exist_ok=True)
    file = request.out / "results.jsonl"
    results = {one.key: one for one in _read(file)}
    for key, measure in () if request.report else _work(request.audits):
        if key not in results:
            results[key] = CellResult(key, request.audits, measure())
            with file.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(results[key].as_json()) + "\n")
            print(key, results[key].counts, flush=True)
    text = markdown(results)
    write_text(request.out / "tables.md", text)
    print(text)
    broken = broken_bounds(results)
    if broken:
        sys.exit("\n".join(broken))


def _read(file: Path) -> Iterator[CellResult]:
    if file.exists():
        for line in file.read_text(encoding="utf-8").splitlines():
            yield CellResult(**json.loads(line))


def _work(audits: int) -> Iterator[tuple[str, Callable[[], dict[str, int]]]]:
    """Yield the name of each cell with the function that measures it."""
    for cell in share_cells():
        yield f"intervals: {cell.key}", lambda cell=cell: _count_covered(cell, audits)
    for figures in figure_cells():
        yield f"figures: {figures.key}", lambda cell=figures: _count_figures(cell, audits)
    # Large cells take most of the time, so they come last.
    cells = sorted((*power_cells(), *null_cells()), key=lambda cell: cell.runs * cell.clients)
    for cell in cells:
        yield f"verdicts: {cell.key}", lambda cell=cell: _count_verdicts(cell, audits)


def _count_verdicts(cell: AuditCell, audits: int) -> dict[str, int]:
    drawn = [draw_audit(cell, SEED.child(cell.key, number)) for number in range(audits)]
    return {
        "small_p": sum(one.has_small_p for one in drawn),
        "leaks": sum(one.leaks for one in drawn),
    }


def _count_covered(cell: AuditCell, audits: int) -> dict[str, int]:
    drawn = [draw_gains(cell, SEED.child(cell.key, number)) for number in range(audits)]
    return {
        "one": sum(covered.one for covered in drawn),
        "best": sum(covered.best for covered in drawn),
        "wrongly_below": sum(covered.is_wrongly_below for covered in drawn),
    }


def _count_figures(cell: FigureCell, audits: int) -> dict[str, int]:
    return {
        "covered": sum(
            draw_figures(cell, SEED.child(cell.key, number)) for number in range(audits)
        )
    }


if __name__ == "__main__":
    main()
