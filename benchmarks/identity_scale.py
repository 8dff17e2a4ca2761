"""Measure time and memory of re-identifying the senders of 5,000 updates of a million numbers.

    python benchmarks/identity_scale.py --out DIR                        writes 25 GB
    python benchmarks/identity_scale.py --out DIR --users 10 --rounds 5  a smoke test

A federation of 100 users trains the language model on synthetic words for 50 rounds. Its
transcript stays in DIR and is reused by the next call. In every fifth round, a shadow device
with each user's prior participates too. Then Overheard's attack runs once per row, in a new
process on one core: with names that last or change every round, and with simulated users or
shadow devices. Linux only: peaks are VmHWM of /proc/self/status.
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
from overheard.auditing.attack_runner import draw_pseudonyms
from overheard.core.compute_settings import ComputeSettings
from overheard.core.examples import Examples
from overheard.core.facts import Facts
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.known_users import KnownUsers
from overheard.core.messages import Broadcast, Message, Update, apply_update
from overheard.core.parties import SERVER, Party, client, shadow_device
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.core.true_facts.users_of_clients import UsersOfClients
from overheard.core.truth import GroundTruth
from overheard.core.view import mean_update
from overheard.learning.initialization import initial_weights
from overheard.learning.models.lstm import Lstm
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientTask
from overheard.linkage.known_updates import UpdateSource
from overheard.questions.identity.attacks.reidentify_wccn import ReidentifyWccn

SECONDS = 600
"""Largest accepted time of each row."""

MEGABYTES = 4000
"""Largest accepted peak memory of the whole process."""

VOCABULARY, WINDOW, EXAMPLES = 5800, 10, 64
"""Words (999,496 model parameters), words in a window, and windows per user."""

SHADOW_INTERVAL = 5
"""Shadow devices participate every so many rounds."""

TASK = Task((WINDOW,), tuple(map(str, range(VOCABULARY))), VOCABULARY)
BUILD = partial(Lstm().build, TASK)
RECIPE = Recipe(rate=1.0, epochs=1, batch=16)


@dataclass(frozen=True, slots=True)
class Row:
    """One configuration of the attack.

    Args:
        updates: source of known updates.
        lasts: whether senders have lasting names.

    """

    updates: UpdateSource
    lasts: bool


ROWS = {
    "trained,lasting": Row("simulated", lasts=True),
    "trained,of-a-round": Row("simulated", lasts=False),
    "shadow,lasting": Row("shadow", lasts=True),
    "shadow,of-a-round": Row("shadow", lasts=False),
}


def user(number: int) -> str:
    """Return the name of a user."""
    return f"user {number}"


def windows(number: int, part: str) -> Examples:
    """Draw windows of one user, whose word frequencies differ from others'."""
    user_seed = Seed(0).child("user", number)
    log_ranks = torch.arange(2, VOCABULARY + 1).double().log()
    preferences = torch.randn(
        VOCABULARY - 1, generator=user_seed.child("taste").generator()
    ).double()
    words = 1 + torch.multinomial(
        (preferences - log_ranks).softmax(0),
        EXAMPLES * (WINDOW + 1),
        True,
        generator=user_seed.child(part).generator(),
    ).reshape(EXAMPLES, WINDOW + 1)
    return Examples(words[:, :WINDOW], words[:, WINDOW])


def write_run(folder: Path, users: int, rounds: int) -> None:
    """Run the rounds of the federation that are missing in the folder."""
    clients = [client(number) for number in range(users)]
    devices = [shadow_device(number) for number in range(users)]
    examples = {party: windows(number, "private") for number, party in enumerate(clients)}
    examples |= {party: windows(number, "prior") for number, party in enumerate(devices)}
    manifest = Manifest(
        TASK, "lstm", RECIPE, (), (SERVER, *clients, *devices), rounds - 1, seed=0
    )
    recorder = Recorder(folder, manifest)
    start = dict(initial_weights(BUILD, Seed(0)))
    if recorder.committed_rounds():
        start = _after(folder)
    for number in range(recorder.committed_rounds(), rounds):
        cohort = clients + (devices if number % SHADOW_INTERVAL == 0 else [])
        with recorder.open_round() as channel:
            channel.record(Message(number, SERVER, frozenset(cohort), Broadcast(start)))
            updates = _train(start, {party: examples[party] for party in cohort}, number)
            for sender, update in updates.items():
                channel.record(Message(number, sender, frozenset({SERVER}), update))
        start = apply_update(start, mean_update([updates[party] for party in clients]).delta)
        print(f"\rround {number + 1} of {rounds}", end="", flush=True)
    print()


def _after(folder: Path) -> dict[str, torch.Tensor]:
    """Return the weights after the last written round."""
    view = open_transcript(folder).seen_by(SERVER)
    last = max(view.rounds())
    updates = [
        view.updates(sender)[last] for sender in view.senders() if sender.startswith("client")
    ]
    return apply_update(view.broadcasts()[last], mean_update(updates).delta)


def _train(
    start: Mapping[str, torch.Tensor], examples: Mapping[Party, Examples], number: int
) -> dict[Party, Update]:
    pool = Examples(
        torch.cat([own.inputs for own in examples.values()]),
        torch.cat([own.labels for own in examples.values()]),
    )
    rows = torch.arange(len(pool)).split(EXAMPLES)
    members = [ClientTask(party, own) for party, own in zip(examples, rows, strict=True)]
    trained = train_cohort(
        BUILD, start, pool, members, RECIPE, seed=Seed(0), round=number, workers=1
    )
    return {
        Party(result.client.name): Update(result.delta, EXAMPLES, {"loss": result.loss})
        for result in trained
    }


def attack(folder: Path, users: int, row: Row) -> None:
    """Run the attack once in this process, and print its time and memory."""
    truth = GroundTruth(Facts(UsersOfClients({client(n): user(n) for n in range(users)})))
    transcript = open_transcript(folder)
    if not row.lasts:
        pseudonyms = draw_pseudonyms(transcript, Seed(0))
        transcript, truth = (
            pseudonyms.rename_senders(transcript),
            truth.renamed(pseudonyms),
        )
    view, users_of = transcript.seen_by(SERVER), truth.facts.need(UsersOfClients).users
    known = KnownUsers(
        {user(number): windows(number, "prior") for number in range(users)},
        shadow_devices={shadow_device(number): user(number) for number in range(users)},
    )
    knowledge = Knowledge(
        VOCABULARY,
        BUILD,
        recipe=RECIPE,
        compute=ComputeSettings(workers=1),
        facts=Facts(known),
    )
    start, busy = perf_counter(), process_time()
    claims = ReidentifyWccn(row.updates).infer(view, tuple(users_of), knowledge, Seed(0))
    seconds, busy, peak = perf_counter() - start, process_time() - busy, _peak()
    is_correct = [
        claim.users[int(claim.scores.argmax())] == users_of[target]
        for target, claim in claims.items()
    ]
    verdict = "reached" if seconds <= SECONDS and peak <= MEGABYTES else "MISSED"
    print(
        f"{seconds:5.0f} s ({busy:.0f} s of the core), peak {peak:5.0f} MB, bar {SECONDS} s "
        f"and {MEGABYTES} MB: {verdict}; "
        f"{sum(is_correct) / len(is_correct):.3f} of {len(is_correct)} senders identified",
        flush=True,
    )


def _peak() -> float:
    """Return the peak memory of this process in megabytes (1e6 bytes)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise RuntimeError("/proc/self/status has no VmHWM")


def main() -> None:
    """Write the run once, then run each row in a new process."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder for the run")
    parser.add_argument("--users", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--row", choices=ROWS, help="only this row")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    folder = arguments.out / f"{arguments.users}x{arguments.rounds}"
    if arguments.here:
        attack(folder, arguments.users, ROWS[arguments.row])
        return
    start = perf_counter()
    write_run(folder, arguments.users, arguments.rounds)
    assert is_complete(folder)
    print(f"the run is complete after {perf_counter() - start:.0f} s")
    for name in [arguments.row] if arguments.row else ROWS:
        print(f"{name:20}", end="", flush=True)
        command = [sys.executable, __file__, *sys.argv[1:], "--row", name, "--here"]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
