import pytest

from overheard.algorithms.fed_avg import FedAvg
from overheard.algorithms.fed_avg_m import FedAvgM
from overheard.algorithms.partial_sharing import PartialSharing
from overheard.archive.manifest import DefenseRecord, Manifest
from overheard.consistency.statement import StatedStep, parse_algorithm, state_step
from overheard.core.algorithm.algorithm import Algorithm
from overheard.core.mechanism import Mechanism
from overheard.plans.registries import ALGORITHMS
from tests.consistency.runs import check, record, simulate


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
