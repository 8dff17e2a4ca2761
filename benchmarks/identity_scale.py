"""Who sent 5,000 updates of a million numbers: the time and memory that our attack takes.

    python benchmarks/identity_scale.py --out DIR                        25 GB are written
    python benchmarks/identity_scale.py --out DIR --users 10 --rounds 5  a smoke test

A federation of 100 users trains the language model on made-up words for 50 rounds; all that it
said stays in DIR, where a second call finds it. In every fifth round the server lets a shadow
device of each user's prior take part as well. Then the attack runs once a row, in a fresh
process and on one core: on names that last and on names of a round, and from users whom it
trains itself and from shadow devices. Linux only: peaks are VmHWM of /proc/self/status.
"""

import argparse
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter, process_time

import torch

from overheard.archive.manifest import Manifest, is_complete
from overheard.archive.reader import open_transcript
from overheard.archive.recorder import Recorder
from overheard.auditing.pseudonyms import Renamed, renamed
from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.known_users import KnownUsers
from overheard.core.means import Means
from overheard.core.messages import Broadcast, Message, Update, moved
from overheard.core.parties import SERVER, Party, client, shadow
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.core.truth import GroundTruth
from overheard.core.view import mean_update
from overheard.learning.cohort import Member
from overheard.learning.initial import initial_weights
from overheard.learning.models.lstm import Lstm
from overheard.learning.train import train_cohort
from overheard.linkage.prior_updates import Source
from overheard.questions.identity.attacks.reidentify_wccn import ReidentifyWccn

SECONDS = 600
"""To reach, by any row."""

MEGABYTES = 4000
"""To reach, of the whole process."""

VOCABULARY, WINDOW, EXAMPLES = 5800, 10, 64
"""Words, of which the model has 999,496 parameters; words before the next; windows a user."""

EVERY = 5
"""Rounds from one in which shadow devices take part to the next."""

TASK = Task((WINDOW,), tuple(map(str, range(VOCABULARY))), VOCABULARY)
BUILD = partial(Lstm().build, TASK)
RECIPE = Recipe(rate=1.0, epochs=1, batch=16)


@dataclass(frozen=True, slots=True)
class Row:
    """One way to attack the run.

    Args:
        updates: where labelled updates come from.
        lasts: whether a sender keeps its name.

    """

    updates: Source
    lasts: bool


ROWS = {
    "trained,lasting": Row("simulated", lasts=True),
    "trained,of-a-round": Row("simulated", lasts=False),
    "shadow,lasting": Row("shadow", lasts=True),
    "shadow,of-a-round": Row("shadow", lasts=False),
}


def user(number: int) -> str:
    """The name of a user."""
    return f"user {number}"


def windows(number: int, part: str) -> Examples:
    """Windows of one user, who likes some of the words better than others do."""
    own = Seed(0).child("user", number)
    rare = torch.arange(2, VOCABULARY + 1).double().log()
    taste = torch.randn(VOCABULARY - 1, generator=own.child("taste").generator()).double()
    words = 1 + torch.multinomial(
        (taste - rare).softmax(0),
        EXAMPLES * (WINDOW + 1),
        True,
        generator=own.child(part).generator(),
    ).reshape(EXAMPLES, WINDOW + 1)
    return Examples(words[:, :WINDOW], words[:, WINDOW])


def write(folder: Path, users: int, rounds: int) -> None:
    """Hold the federation, as far as the folder lacks it."""
    clients = [client(number) for number in range(users)]
    devices = [shadow(number) for number in range(users)]
    held = {who: windows(number, "private") for number, who in enumerate(clients)}
    held |= {who: windows(number, "prior") for number, who in enumerate(devices)}
    manifest = Manifest(
        TASK, "lstm", RECIPE, (), (SERVER, *clients, *devices), rounds - 1, seed=0
    )
    recorder = Recorder(folder, manifest)
    start = dict(initial_weights(BUILD, Seed(0)))
    if recorder.committed():
        start = _after(folder)
    for number in range(recorder.committed(), rounds):
        cohort = clients + (devices if number % EVERY == 0 else [])
        with recorder.round() as said:
            said.send(Message(number, SERVER, frozenset(cohort), Broadcast(start)))
            sent = _trained(start, {who: held[who] for who in cohort}, number)
            for who, update in sent.items():
                said.send(Message(number, who, frozenset({SERVER}), update))
        start = moved(start, mean_update([sent[who] for who in clients]).delta)
        print(f"\rround {number + 1} of {rounds}", end="", flush=True)
    print()


def _after(folder: Path) -> dict[str, torch.Tensor]:
    """Where the round after those that are written starts."""
    view = open_transcript(folder).seen_by(SERVER)
    last = max(view.rounds())
    sent = [view.updates(who)[last] for who in view.senders() if who.startswith("client")]
    return moved(view.broadcasts()[last], mean_update(sent).delta)


def _trained(
    start: Mapping[str, torch.Tensor], held: Mapping[Party, Examples], number: int
) -> dict[Party, Update]:
    pool = Examples(
        torch.cat([one.inputs for one in held.values()]),
        torch.cat([one.labels for one in held.values()]),
    )
    rows = torch.arange(len(pool)).split(EXAMPLES)
    members = [Member(who, own) for who, own in zip(held, rows, strict=True)]
    trained = train_cohort(
        BUILD, start, pool, members, RECIPE, seed=Seed(0), round=number, workers=1
    )
    return {
        Party(one.member.name): Update(one.delta, EXAMPLES, {"loss": one.loss})
        for one in trained
    }


def attack(folder: Path, users: int, row: Row) -> None:
    """Run the attack once in this process, and say what it took."""
    truth = GroundTruth({}, {}, users={client(n): user(n) for n in range(users)})
    run = Renamed(open_transcript(folder), truth)
    if not row.lasts:
        run = renamed(run.transcript, truth, Seed(0))
    view, whose = run.transcript.seen_by(SERVER), run.truth.users
    knowledge = Knowledge(
        VOCABULARY,
        BUILD,
        recipe=RECIPE,
        means=Means(workers=1),
        people=KnownUsers(
            {user(number): windows(number, "prior") for number in range(users)},
            devices={shadow(number): user(number) for number in range(users)},
        ),
    )
    start, busy = perf_counter(), process_time()
    claims = ReidentifyWccn(row.updates).infer(view, tuple(whose), knowledge, Seed(0))
    seconds, busy, peak = perf_counter() - start, process_time() - busy, _peak()
    right = [
        claim.users[int(claim.scores.argmax())] == whose[who] for who, claim in claims.items()
    ]
    met = "reached" if seconds <= SECONDS and peak <= MEGABYTES else "MISSED"
    print(
        f"{seconds:5.0f} s ({busy:.0f} s of the core), peak {peak:5.0f} MB, bar {SECONDS} s "
        f"and {MEGABYTES} MB: {met}; "
        f"{sum(right) / len(right):.3f} of {len(right)} senders named",
        flush=True,
    )


def _peak() -> float:
    """The most that this process held, in megabytes (1e6 bytes)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise RuntimeError("/proc/self/status has no VmHWM")


def main() -> None:
    """Write once, attack in a process of its own each way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="where the run is written")
    parser.add_argument("--users", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--row", choices=ROWS, help="this row alone")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    folder = chosen.out / f"{chosen.users}x{chosen.rounds}"
    if chosen.here:
        attack(folder, chosen.users, ROWS[chosen.row])
        return
    start = perf_counter()
    write(folder, chosen.users, chosen.rounds)
    assert is_complete(folder)
    print(f"the run is there after {perf_counter() - start:.0f} s")
    for name in [chosen.row] if chosen.row else ROWS:
        print(f"{name:20}", end="", flush=True)
        command = [sys.executable, __file__, *sys.argv[1:], "--row", name, "--here"]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
