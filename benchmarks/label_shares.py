"""Measure the error of each attack on label shares, all on the same transcripts.

    python benchmarks/label_shares.py --out DIR            the whole grid; hours on one core
    python benchmarks/label_shares.py --out DIR --quick    a smoke test
    python benchmarks/label_shares.py --out DIR --report   the table of existing results

Federations of MNIST and Fashion-MNIST, Dirichlet 0.5, 1 and 2, SGD with 1 and 5 local epochs
and Adam; 1,000, 100 and 20 auxiliary examples per class; observed rounds 1, 5 and all ten.
Every result is stored immediately, so an interrupted run resumes with the same command. Writes
DIR/table.md and DIR/table.json. A cell is measured again if its file is deleted or its attack
has other settings. Changes of an attack's code are not detected.
"""

import argparse
import os
import shlex
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import final

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from _label_shares.grid import Cell, Extent, Lineup, Scale, Setting
from _label_shares.measure import Workplace, measure
from _label_shares.page import figures_json, markdown
from _label_shares.store import Store
from _label_shares.table import load_results
from overheard.archive.atomic import write_text
from overheard.core.errors import AuditError
from overheard.learning.threads import available_cores

POLL = 5.0
"""Seconds between progress checks; each takes some 50 ms for the whole grid."""

QUICK_SCALE = Scale(clients=5, examples=100, virtual=64, virtual_at_limit=128)

QUICK_EXTENT = Extent(sources=("mnist",), alphas=(1.0,), auxiliaries=(100, 20), seeds=1)


@dataclass(frozen=True, slots=True)
class Request:
    """Settings of the command line."""

    out: Path
    data: Path | None
    workers: int
    keep_bank: bool
    report: bool
    setting: str | None
    scale: Scale
    extent: Extent
    lineup: Lineup

    @property
    def store(self) -> Store:
        """The store of results."""
        return Store(self.out, self.lineup.attacks())


def main() -> None:
    """Measure all missing federations and print the table."""
    request = read_command_line()
    # A signal that ends this process ends its children too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        request.store.claim(request.scale)
        if request.setting is not None:
            measure_one(request, request.setting)
            return
        failed = [] if request.report else measure_all(request)
        write_table(request)
    except AuditError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit("stopped: run the same command again to resume")
    if failed:
        sys.exit("\n".join(f"failed, see {path}" for path in failed))


def measure_one(request: Request, name: str) -> None:
    """Measure one federation in this process while its parent process lives."""
    parent = os.getppid()
    (setting,) = [setting for setting in request.extent.settings() if setting.name == name]
    store = request.store
    workplace = Workplace(
        store, request.data, request.keep_bank, lambda: os.getppid() == parent
    )
    cells = request.extent.cells(setting, store.attacks)
    measure(setting, cells, request.scale, workplace)


def measure_all(request: Request) -> list[Path]:
    """Measure each federation in a new process; return the logs of failed ones."""
    store = request.store
    cells = {
        setting: request.extent.cells(setting, store.attacks)
        for setting in request.extent.settings()
    }
    waiting = deque(setting for setting in cells if not all(map(store.has, cells[setting])))
    console, failed = Console(stderr=True), list[Path]()
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    with ExitStack() as stack:
        bar = stack.enter_context(
            Progress(
                *columns,
                console=console,
                speed_estimate_period=3600,
                disable=not console.is_terminal,
            )
        )
        pool = stack.enter_context(ProcessPool())
        task = bar.add_task("cells", total=sum(map(len, cells.values())))
        while waiting or pool.running:
            while waiting and len(pool.running) < request.workers:
                pool.start(waiting.popleft(), request.out)
            bar.update(task, completed=_count_done(store, cells.values()))
            time.sleep(POLL)
            failed += pool.remove_ended()
        bar.update(task, completed=_count_done(store, cells.values()))
    return failed


@final
class ProcessPool:
    """Processes that each measure one federation; they are killed at the end of the block."""

    def __init__(self) -> None:
        self.running: dict[Path, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> "ProcessPool":
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.running.values():
            process.kill()
            process.wait()

    def start(self, setting: Setting, out: Path) -> None:
        """Start a process that measures this federation with the same command line."""
        log = out / "logs" / f"{setting.name}.txt"
        log.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, *sys.argv, "--setting", setting.name]
        with log.open("ab") as file:
            file.write(f"$ {shlex.join(command)}\n".encode())
            file.flush()
            self.running[log] = subprocess.Popen(
                command,
                stdout=file,
                stderr=file,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
                # Only this process receives Ctrl-C; it then kills the others.
                start_new_session=True,
            )

    def remove_ended(self) -> list[Path]:
        """Remove ended processes; return the logs of those that failed."""
        ended = {
            log: process for log, process in self.running.items() if process.poll() is not None
        }
        for log in ended:
            del self.running[log]
        return [log for log, process in ended.items() if process.returncode]


def _count_done(store: Store, settings: Iterable[Iterable[Cell]]) -> int:
    return sum(store.has(cell) for cells in settings for cell in cells)


def write_table(request: Request) -> None:
    """Print and write the table of all existing results."""
    results = load_results(request.extent, request.store)
    rows = results.rows()
    page = markdown(request.scale, request.store.attacks, results, rows)
    write_text(request.out / "table.md", page)
    write_text(request.out / "table.json", figures_json(request.scale, results, rows))
    print(page)


def read_command_line() -> Request:
    """Parse the command line; defaults are those of `Scale` and `Extent`."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    scale_defaults, extent_defaults = Scale(), Extent()
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder with data sets")
    parser.add_argument(
        "--workers",
        type=int,
        default=available_cores(),
        help="federations measured in parallel",
    )
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="only cells whose name contains TEXT"
    )
    parser.add_argument("--seeds", type=int, default=extent_defaults.seeds)
    parser.add_argument("--limit-seeds", type=int, default=extent_defaults.limit_seeds)
    parser.add_argument(
        "--wrong-seeds",
        type=int,
        default=extent_defaults.wrong_seeds,
        help="seeds with distorted auxiliary examples, and with noise unknown to the attacker",
    )
    parser.add_argument(
        "--alphas",
        type=float,
        nargs="+",
        default=extent_defaults.alphas,
        help="parameters of the Dirichlet splits",
    )
    parser.add_argument(
        "--auxiliary",
        type=int,
        nargs="+",
        default=extent_defaults.auxiliaries,
        help="auxiliary examples per class",
    )
    parser.add_argument(
        "--with-ppa", action="store_true", help="include PPA, the slowest attack"
    )
    parser.add_argument(
        "--examples", type=int, default=scale_defaults.examples, help="per client"
    )
    parser.add_argument(
        "--virtual", type=int, default=scale_defaults.virtual, help="virtual clients"
    )
    parser.add_argument(
        "--limit-virtual",
        type=int,
        default=None,
        help="virtual clients at the limit; default: three times --virtual",
    )
    parser.add_argument(
        "--most-rounds",
        type=int,
        default=Lineup().most_rounds,
        help="rounds that Overheard's attack reads",
    )
    parser.add_argument(
        "--steps",
        type=int,
        default=Lineup().steps,
        help="training steps of Overheard's networks",
    )
    parser.add_argument(
        "--convolutions", action="store_true", help="LDIA with convolutions, as published"
    )
    parser.add_argument("--keep-bank", action="store_true", help="keep simulations (large)")
    parser.add_argument("--quick", action="store_true", help="a smoke test")
    parser.add_argument("--report", action="store_true", help="only print existing results")
    parser.add_argument("--setting", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.workers < 1:
        parser.error(f"--workers must be 1 or more, got {arguments.workers}")
    scale = Scale(
        examples=arguments.examples,
        virtual=arguments.virtual,
        virtual_at_limit=arguments.limit_virtual or 3 * arguments.virtual,
    )
    extent = Extent(
        seeds=arguments.seeds,
        limit_seeds=arguments.limit_seeds,
        wrong_seeds=arguments.wrong_seeds,
        alphas=tuple(arguments.alphas),
        auxiliaries=tuple(arguments.auxiliary),
        only=arguments.only,
    )
    lineup = Lineup(
        arguments.most_rounds, arguments.steps, arguments.convolutions, arguments.with_ppa
    )
    return Request(
        arguments.out,
        arguments.data,
        arguments.workers,
        arguments.keep_bank,
        arguments.report,
        arguments.setting,
        QUICK_SCALE if arguments.quick else scale,
        replace(QUICK_EXTENT, only=arguments.only) if arguments.quick else extent,
        replace(lineup, most_rounds=2, steps=50) if arguments.quick else lineup,
    )


if __name__ == "__main__":
    main()
