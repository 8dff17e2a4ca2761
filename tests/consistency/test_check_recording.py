"""Checks of recordings."""

import os
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from overheard.algorithms.fed_avg import FedAvg
from overheard.algorithms.fed_avg_m import FedAvgM
from overheard.algorithms.partial_sharing import PartialSharing
from overheard.archive.manifest import DefenseRecord, Manifest, read_manifest
from overheard.archive.reader import read_round
from overheard.archive.recorder import Recorder
from overheard.consistency import check as module
from overheard.consistency.check import check_recording
from overheard.consistency.proof import RecordingProof
from overheard.consistency.statement import StatedStep, parse_algorithm, state_step
from overheard.core.algorithm.algorithm import Algorithm
from overheard.core.errors import TranscriptError
from overheard.core.examples import Examples
from overheard.core.mechanism import Mechanism
from overheard.core.messages import Message
from overheard.core.parties import client
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.defenses.dp_fedavg import DpFedavg
from overheard.defenses.dp_sgd import DpSgd
from overheard.federation.federation import Federation
from overheard.federation.run import run
from overheard.learning.models.mlp import Mlp
from overheard.plans.registries import ALGORITHMS, DEFENSES
from tests.consistency.runs import Setting, check, minus, record, simulate


def store(folder: Path, rounds: list[list[Message]]) -> Path:
    parties = ("server", *map(client, range(4)))
    recorder = Recorder(folder, Manifest(None, "", None, (), parties, None))
    for messages in rounds:
        with recorder.open_round() as open_round:
            for message in messages:
                open_round.record(message)
    return folder


def test_a_stored_recording_proves_what_its_messages_prove(tmp_path: Path) -> None:
    rounds = record(simulate())
    found = check_recording(store(tmp_path, rounds), StatedStep())
    expected = check(rounds)
    assert (found.outcome, found.reason) == (expected.outcome, expected.reason)
    assert found.stated is not None
    assert len(found.stated.residuals) == 5
    assert max(found.stated.residuals.values()) < 1e-5


def test_a_recording_is_read_once_until_its_files_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, read = store(tmp_path, record(simulate())), list[int]()

    def count(transcript: Path, number: int) -> tuple[Message, ...]:
        read.append(number)
        return read_round(transcript, number)

    monkeypatch.setattr(module, "read_round", count)
    first = check_recording(folder, StatedStep())
    assert check_recording(folder / "transcript", StatedStep()) is first
    assert read == [0, 1, 2, 3, 4, 5]
    changed = folder / "transcript" / "rounds" / "r0001" / "messages.jsonl"
    os.utime(changed, (1e9, 1e9))
    check_recording(folder, StatedStep())
    assert len(read) == 12


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    folder = store(tmp_path, record(simulate()))
    path = next(folder.glob("transcript/rounds/r0002/*update*"))
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(TranscriptError):
        check_recording(folder, StatedStep())


def test_nothing_is_written_beside_a_recording(tmp_path: Path) -> None:
    folder = store(tmp_path, record(simulate()))
    before = sorted(folder.rglob("*"))
    check_recording(folder, StatedStep())
    assert sorted(folder.rglob("*")) == before


@settings(max_examples=12)
@given(
    rate=st.floats(0.05, 3.0),
    momentum=st.floats(0.05, 0.95),
    absent=st.integers(0, 3),
    is_wrong=st.booleans(),
)
def test_rate_and_momentum_are_found_under_either_reading(
    rate: float, momentum: float, absent: int, is_wrong: bool
) -> None:
    setting = Setting(
        FedAvgM(rate=rate, momentum=momentum),
        absent=lambda number, party: party == client(absent) and number == 2,
        shapes={"w": (9, 7), "b": (9,)},
    )
    proof = check(
        record(
            simulate(setting),
            lambda run, number, local, start: (
                minus(minus(local, start), start) if is_wrong else minus(local, start)
            ),
        )
    )
    assert proof.outcome == ("contradicts" if is_wrong else "follows")
    assert proof.best is not None
    assert proof.best.step.reading == ("differences" if is_wrong else "weights")
    assert proof.best.step.fitted["rate"] == pytest.approx(rate, 1e-3)
    assert proof.best.step.fitted["momentum"] == pytest.approx(momentum, abs=1e-3)


@settings(max_examples=8)
@given(st.integers(0, 2**16))
def test_random_replies_never_follow_and_never_contradict(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    run = simulate(Setting(rounds=4, shapes={"w": (9, 7)}))
    proof = check(
        record(
            run,
            lambda run, number, local, start: {
                name: 0.1 * torch.randn(one.shape, generator=generator)
                for name, one in start.items()
            },
        )
    )
    assert proof.outcome == "cannot tell"
    assert not proof.allows_no_leak("updates")


TASK = Task((1, 6, 6), ("a", "b", "c"))


def build_model() -> nn.Module:
    """A network of 471 numbers, with batch norm."""
    return nn.Sequential(
        nn.Flatten(), nn.Linear(36, 10), nn.BatchNorm1d(10), nn.ReLU(), nn.Linear(10, 3)
    )


def federation(algorithm: Algorithm | None = None) -> Federation:
    """Five clients of four to twelve examples; five rounds."""
    draw = torch.Generator().manual_seed(0)
    pool = Examples(torch.rand(40, 1, 6, 6, generator=draw), torch.arange(40) % 3)
    rows = torch.arange(40).split([4, 6, 8, 10, 12])
    planned = Federation(
        build_model=build_model,
        model="mlp",
        task=TASK,
        recipe=Recipe(rate=0.1, epochs=1, batch=4),
        pool=pool,
        rows=[list(rows)] * 5,
        test=pool,
        rounds=5,
        seed=Seed(5),
        engine="sequential",
        background=pool,
    )
    return planned if algorithm is None else replace(planned, algorithm=algorithm)


def proofs(planned: Federation, folder: Path) -> tuple[RecordingProof, RecordingProof]:
    """Return what the run proves if it states its server's step, and if it states nothing."""
    run(planned, folder)
    stated = state_step(read_manifest(folder))
    return check_recording(folder, stated), check_recording(folder, StatedStep())


@pytest.mark.slow
@pytest.mark.parametrize("name", ALGORITHMS.plugins())
def test_no_algorithm_contradicts_itself(name: str, tmp_path: Path) -> None:
    planned = federation(ALGORITHMS.plugins()[name]())
    if planned.algorithm.schedule(1, 1, Seed(0)) is None:
        planned = replace(planned, participation=0.6, failure_rate=0.1)
    stated, unstated = proofs(planned, tmp_path)
    assert stated.outcome == ("cannot tell" if name == "fed_buff" else "follows"), stated
    assert stated.allows_no_leak("updates")
    assert unstated.outcome != "contradicts", unstated
    assert not [one for one in (*stated.faults, *unstated.faults) if one.is_refusal]


@pytest.mark.slow
@pytest.mark.parametrize("name", DEFENSES.plugins())
def test_no_defense_makes_a_run_contradict_itself(name: str, tmp_path: Path) -> None:
    defense = DEFENSES.plugins()[name]()
    if isinstance(defense, DpFedavg):
        # With more noise nothing else of a model of 471 numbers can be seen.
        defense = DpFedavg(noise_multiplier=0.1)
    planned = replace(federation(), defenses=(defense,))
    if isinstance(defense, DpSgd):
        # It refuses a batch norm.
        planned = replace(planned, build_model=partial(Mlp(hidden=(10,)).build, TASK))
    stated, unstated = proofs(planned, tmp_path)
    assert stated.outcome == "follows", stated
    assert unstated.outcome != "contradicts", unstated
    assert unstated.allows_no_leak("updates")


@pytest.mark.slow
@pytest.mark.parametrize("sampling", ["poisson", "with_replacement"])
def test_sampling_does_not_make_a_run_contradict_itself(sampling: str, tmp_path: Path) -> None:
    planned = replace(federation(), sampling=sampling, participation=0.6)
    for proof in proofs(planned, tmp_path):
        assert proof.outcome != "contradicts", proof
        assert proof.allows_no_leak("updates")


@pytest.mark.parametrize("kind", ALGORITHMS.plugins().values())
def test_the_text_of_every_algorithm_is_understood(kind: type[Algorithm]) -> None:
    assert parse_algorithm(repr(kind())) == kind()


@pytest.mark.parametrize(
    ("text", "algorithm"),
    [
        ("FedAvgM(rate=0.5), sampling poisson, epochs (1, 3)", FedAvgM(rate=0.5)),
        ("PartialSharing(stays=('a.*',)), stragglers 0.5", PartialSharing(stays=("a.*",))),
    ],
)
def test_what_a_protocol_says_besides_is_left_out(text: str, algorithm: Algorithm) -> None:
    assert parse_algorithm(text) == algorithm


@pytest.mark.parametrize(
    "text",
    [
        "",
        "fedavg",
        "FedAvg",
        "FedAvg(rate=-1.0)",
        "FedAvg(rate='1.0')",
        "FedAvg(speed=1.0)",
        "FedAvg(1.0)",
        "FedAvg(**{})",
        "FedAvg(rate=open('x'))",
        "FedAvg(rate=__import__('os').system('false'))",
        "system('false')",
        "FedAvg.__init__(rate=1.0)",
        "FedAvg(rate=" + "(" * 900 + ")",
        "FedAvg(rate=" + "-" * 900 + "1.0)",
    ],
)
def test_any_other_text_is_not_stated(text: str) -> None:
    assert parse_algorithm(text) is None


def manifest(**settings: object) -> Manifest:
    return Manifest(None, "", None, (), ("server",), None, **settings)  # type: ignore[arg-type]


def test_a_manifest_states_the_algorithm_of_a_recording_or_a_simulation() -> None:
    recorded = manifest(framework="flwr 1.2", algorithm="FedAvgM(rate=0.5, momentum=0.9)")
    assert state_step(recorded).algorithm == FedAvgM(rate=0.5, momentum=0.9)
    assert state_step(manifest(protocol="FedAvgM(rate=0.5)")).algorithm == FedAvgM(rate=0.5)
    assert state_step(manifest()).algorithm == FedAvg()
    assert state_step(manifest(framework="flwr 1.2")).algorithm is None


def test_a_manifest_states_the_noise_of_the_server_alone() -> None:
    def noisy(noised_at: str) -> Manifest:
        mechanism = Mechanism(0.5, 3.0, 1e-5, noised_at, "client")  # type: ignore[arg-type]
        defense = DefenseRecord("dp", "", "server", "", mechanism)
        return Manifest(None, "", None, (defense,), ("server",), None)

    # Multiplier 0.5 times clip 3.
    assert state_step(noisy("server"), "I know it").noise == 1.5
    assert state_step(noisy("client")).noise == 0.0
    assert state_step(noisy("server"), "I know it").accept == "I know it"


def test_absurd_settings_of_a_stated_algorithm_break_nothing() -> None:
    stated = parse_algorithm("FedAdam(rate=1e999, tau=1e-300, first_square=1e999)")
    assert check(record(simulate()), StatedStep(stated)).outcome == "follows"
