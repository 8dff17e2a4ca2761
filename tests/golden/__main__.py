"""Write the golden audits, or name what changed in them.

    python -m tests.golden --write            make all audits, write both layers: two minutes
    python -m tests.golden --write NAME ...   only these
    python -m tests.golden --judge [NAME ...] judge stored claims again
    python -m tests.golden --diff [COMMIT]    each value that differs from a commit, old -> new

Writing refuses a tree with changes beside the golden files, as results must belong to a commit.
It also refuses p-values that are near the level of verdicts.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter

from tests.golden.audits import claim_names, make_audit, names, small
from tests.golden.changes import line_changes, value_changes
from tests.golden.claims import claims_of
from tests.golden.files import CLAIMS, HERE, JUDGEMENTS, write_claims, write_judgement
from tests.golden.judgements import (
    ROOM,
    VERDICT_LEVEL,
    Judgement,
    judged_audit,
    judgement_of,
    near_levels,
)
from tests.golden.stored_audits import FOLDER as INPUTS
from tests.golden.stored_audits import (
    load_audit,
    pack_audit,
    plain_values,
    read_audit,
    store_packed,
)

WRITTEN = (CLAIMS, INPUTS, JUDGEMENTS)
"""The folders of golden files."""

MOST_OF_INPUT = 10
"""Most changes of a stored audit that are printed; its judgement shows what follows."""


def main() -> None:
    """Write or compare, as the command line says."""
    given = read_command_line()
    if given.diff is not None:
        for line in differences(HERE, given.diff):
            print(line)
        return
    wanted = given.names or names()
    if unknown := sorted(set(wanted) - set(names())):
        sys.exit(f"no golden audit has the name {', '.join(unknown)}; there are {names()}")
    if changed := changed_files(HERE, WRITTEN):
        sys.exit(
            "the tree is dirty, so the results would belong to no commit: commit or stash "
            f"{', '.join(changed)}"
        )
    write(wanted, is_judged_only=given.judge)
    if not given.names:
        remove_others(set(names()))


def write(wanted: Sequence[str], *, is_judged_only: bool) -> None:
    """Make audits, unless those that are stored are to be judged, and write what follows.

    Nothing is written if a p-value is near its level.
    """
    packed, judged = dict[str, bytes](), dict[str, Judgement]()
    began = perf_counter()
    for name in wanted:
        if is_judged_only:
            audit = load_audit(name)
        else:
            with tempfile.TemporaryDirectory(prefix="golden-") as folder:
                packed[name] = pack_audit(make_audit(name, Path(folder)))
            # What the files hold is judged, not what is in memory.
            audit = read_audit(packed[name])
        judged[name] = judgement_of(judged_audit(audit))
        print(f"{perf_counter() - began:6.1f} s  {name}", flush=True)
    refuse_near_levels(judged)
    for name, content in packed.items():
        store_packed(name, content)
    for name, judgement in judged.items():
        write_judgement(name, judgement)
    for name in claim_names():
        if small(name) in packed:
            write_claims(name, claims_of(judged_audit(load_audit(small(name)))))


def refuse_near_levels(judged: dict[str, Judgement]) -> None:
    """Exit if a p-value is within a factor of its level."""
    near = [f"{name}: {place}" for name, one in judged.items() for place in near_levels(one)]
    if near:
        sys.exit(
            f"p-values within a factor of {ROOM:g} of {VERDICT_LEVEL:g}; change the "
            "plans, such as their seeds:\n  " + "\n  ".join(near)
        )


def changed_files(folder: Path, allowed: Sequence[Path]) -> list[str]:
    """Return the files that differ from the commit, outside of allowed folders."""
    root = Path(_git(folder, "rev-parse", "--show-toplevel").strip())
    excluded = [f":(exclude){path.relative_to(root).as_posix()}" for path in allowed]
    status = _git(root, "status", "--porcelain", "--untracked-files=all", "--", ".", *excluded)
    return [line[3:] for line in status.splitlines()]


def remove_others(known: set[str]) -> None:
    """Remove golden files of audits that no plan makes any more."""
    claimed = set(claim_names())
    for folder in WRITTEN:
        for path in folder.iterdir():
            if path.name.partition(".")[0] not in (claimed if folder == CLAIMS else known):
                path.unlink()


def differences(folder: Path, commit: str) -> Iterator[str]:
    """Yield each golden value that differs from a commit, with its file, old and new value."""
    root = Path(_git(folder, "rev-parse", "--show-toplevel").strip())
    places = [path.relative_to(root).as_posix() for path in WRITTEN]
    listed = _git(root, "diff", "--name-only", "--no-renames", commit, "--", *places)
    untracked = _git(root, "ls-files", "--others", "--exclude-standard", "--", *places)
    for name in sorted({*listed.splitlines(), *untracked.splitlines()}):
        old, new = _committed(root, commit, name), _on_disk(root / name)
        short = Path(name).relative_to(Path(places[0]).parent).as_posix()
        if old is None or new is None:
            yield f"{short}: {'added' if old is None else 'removed'}"
        elif name.endswith(".txt"):
            yield from line_changes(old.decode(), new.decode(), short)
        elif name.endswith(".xz"):
            changes = list(value_changes(plain_values(old), plain_values(new), short))
            yield from changes[:MOST_OF_INPUT]
            if len(changes) > MOST_OF_INPUT:
                yield f"{short}: and {len(changes) - MOST_OF_INPUT} more"
        else:
            yield from value_changes(json.loads(old), json.loads(new), short)


def _committed(root: Path, commit: str, name: str) -> bytes | None:
    done = subprocess.run(
        ["git", "show", f"{commit}:{name}"], cwd=root, capture_output=True, check=False
    )
    return None if done.returncode else done.stdout


def _on_disk(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"git {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def read_command_line() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.golden",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--write", action="store_true", help="make audits and write both layers")
    mode.add_argument("--judge", action="store_true", help="judge stored claims again")
    mode.add_argument("--diff", nargs="?", const="HEAD", metavar="COMMIT", help="name changes")
    parser.add_argument("names", nargs="*", metavar="NAME", help="golden audits; default: all")
    return parser.parse_args()


if __name__ == "__main__":
    main()
