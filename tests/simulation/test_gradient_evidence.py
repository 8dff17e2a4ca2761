"""The evidence of candidate records in updates."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from overheard.core.compute_settings import ComputeSettings, MemoryTensorCache
from overheard.core.examples import Examples
from overheard.core.facts import Facts
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.candidate_records import CandidateRecords, candidate_records
from overheard.core.messages import Broadcast, Message, Update
from overheard.core.parties import COHORT, SERVER, Party, client
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.core.view import View
from overheard.learning.layer_gradients import (
    LayerGradients,
    LayerNames,
    activation_bytes,
    layer_gradients,
)
from overheard.questions.membership import checks
from overheard.questions.membership.checks import (
    EXAMPLES_PER_CLIENT,
    simulate_membership,
)
from overheard.simulation import gradient_evidence
from overheard.simulation.gradient_evidence import (
    GradientEvidence,
    compute_gradient_evidence,
    matrix_shares,
)

CLIENTS = [client(number) for number in range(4)]


def with_noise(transcript: Transcript, deviation: float, seed: int) -> Transcript:
    """Return the transcript with normal noise in every update."""
    generator = torch.Generator().manual_seed(seed)
    messages = list(transcript.messages)
    for place, one in enumerate(messages):
        if isinstance(one.body, Update):
            delta = {
                name: part + deviation * torch.randn(part.shape, generator=generator)
                for name, part in one.body.delta.items()
            }
            messages[place] = replace(one, body=replace(one.body, delta=delta))
    return Transcript(tuple(messages))


def evidence(*, memorised: bool, senders=CLIENTS, **known: object) -> GradientEvidence:
    run = simulate_membership(memorised=memorised)
    knowledge = replace(run.knowledge, **known)
    return evidence_in(run.transcript, knowledge, senders)


def evidence_in(
    transcript: Transcript, knowledge: Knowledge, senders: Sequence[Party]
) -> GradientEvidence:
    view = transcript.seen_by(SERVER)
    found = compute_gradient_evidence(view, knowledge, {0: senders, 1: senders})
    rounds = found.values()
    return GradientEvidence(
        sum(one.fit for one in rounds),
        sum(one.strength for one in rounds),
        sum(one.first_strength for one in rounds),
    )


def mean_auc(found: GradientEvidence) -> float:
    """Return the mean AUC of each client's own records against those of no client."""
    scores = found.fit / found.strength.sqrt()
    own = scores[:, : 4 * EXAMPLES_PER_CLIENT].view(4, 4, EXAMPLES_PER_CLIENT)
    members = own.diagonal().T.unsqueeze(2)  # (clients, members, 1)
    return float((members > scores[:, None, 4 * EXAMPLES_PER_CLIENT :]).double().mean())


def test_members_rank_above_records_of_no_client_with_and_without_auxiliary_examples() -> None:
    assert mean_auc(evidence(memorised=True)) > 0.9
    assert mean_auc(evidence(memorised=True, auxiliary=None)) > 0.8


@pytest.mark.parametrize("value", [-9999.0, 1e20, float("inf")])
def test_a_wrong_number_in_a_record_of_no_client_hides_no_member(value: float) -> None:
    run = simulate_membership(memorised=True)
    records = candidate_records(run.knowledge)
    inputs = records.inputs.clone()
    inputs[-1, 3] = value
    facts = Facts(CandidateRecords(replace(records, inputs=inputs)))
    compute = ComputeSettings(cache=MemoryTensorCache(), workers=1)
    assert mean_auc(evidence(memorised=True, facts=facts, compute=compute)) > 0.9


def test_records_that_nobody_trained_on_rank_by_chance() -> None:
    # 80 members and 100 non-members: one standard error is about 0.04.
    assert mean_auc(evidence(memorised=False)) == pytest.approx(0.5, abs=0.13)


def test_where_noise_is_most_of_an_update_simulated_clients_show_its_way(monkeypatch) -> None:
    def learnable(count: int, seed: Seed) -> Examples:
        inputs = torch.randn(count, 20, generator=seed.generator())
        return Examples(inputs, inputs[:, :4].argmax(1))

    monkeypatch.setattr(checks, "examples", learnable)
    run = simulate_membership.__wrapped__(memorised=True)

    def mean_noisy_auc() -> float:
        knowledge = replace(
            run.knowledge, compute=ComputeSettings(cache=MemoryTensorCache(), workers=1)
        )
        noisy = (with_noise(run.transcript, 1.0, seed) for seed in range(2))
        found = [mean_auc(evidence_in(one, knowledge, CLIENTS)) for one in noisy]
        return sum(found) / len(found)

    shown = mean_noisy_auc()
    monkeypatch.setattr(gradient_evidence, "DOMINANT_NOISE", float("inf"))
    hidden = mean_noisy_auc()
    assert shown > hidden + 0.005


def test_each_sender_is_read_by_itself_and_the_cohort_is_one() -> None:
    alone = evidence(memorised=True, senders=CLIENTS[2:3])
    torch.testing.assert_close(alone.fit[0], evidence(memorised=True).fit[2])
    cohort = evidence(memorised=True, senders=[COHORT])
    scores = (cohort.fit / cohort.strength.sqrt())[0]
    assert float(scores[:80].mean()) > float(scores[80:].mean()) + 1


def test_smaller_passes_give_the_same_evidence(monkeypatch) -> None:
    expected = evidence(memorised=True).fit
    monkeypatch.setattr(gradient_evidence, "MAX_PASS_BYTES", 2**16)
    compute = ComputeSettings(cache=MemoryTensorCache(), workers=1)
    found = evidence(memorised=True, compute=compute).fit
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-2)  # of float32


class Experts(nn.Module):
    """A network of which each example reaches one of two experts."""

    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(20, 16), nn.ReLU(), nn.Linear(16, 4)) for _ in range(2)
        )

    def forward(self, inputs: Tensor) -> Tensor:
        return torch.stack([self.experts[int(one[0] > 0)](one) for one in inputs])


def view_of(build: Callable[[], nn.Module]) -> View:
    """Return the view of a round in which a client sends a small update of such a network."""
    torch.manual_seed(0)
    weights = {name: one.detach() for name, one in build().named_parameters()}
    change = {name: 0.01 * torch.randn_like(one) for name, one in weights.items()}
    messages = (
        Message(0, SERVER, frozenset(CLIENTS), Broadcast(weights)),
        Message(0, CLIENTS[0], frozenset({SERVER}), Update(change)),
    )
    return Transcript(messages).seen_by(SERVER)


def known_of(build: Callable[[], nn.Module]) -> Knowledge:
    known = simulate_membership(memorised=True).knowledge
    compute = ComputeSettings(cache=MemoryTensorCache(), workers=1)
    return replace(known, build_model=build, auxiliary=None, compute=compute)


def test_passes_may_differ_in_the_experts_that_their_records_reach(monkeypatch) -> None:
    view, found = view_of(Experts), []
    for size in (gradient_evidence.MAX_PASS_BYTES, 2**14):
        monkeypatch.setattr(gradient_evidence, "MAX_PASS_BYTES", size)
        known = known_of(Experts)
        found.append(compute_gradient_evidence(view, known, {0: CLIENTS[:1]})[0].fit)
    assert found[0].isfinite().all()
    torch.testing.assert_close(found[1], found[0], rtol=1e-3, atol=1e-2)


class Scaled(nn.Module):
    """A linear layer on inputs that are the records until training changes their scale."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(20))
        self.linear = nn.Linear(20, 4)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.linear(self.scale * inputs)


def test_inputs_may_be_the_records_at_the_broadcast_alone() -> None:
    found = compute_gradient_evidence(view_of(Scaled), known_of(Scaled), {0: CLIENTS[:1]})
    assert found[0].fit.isfinite().all()


def test_a_pass_stays_within_its_memory_with_activations(monkeypatch) -> None:
    def build() -> nn.Module:  # activations of 8 kB a record, inputs and slopes of 0.6 kB
        return nn.Sequential(
            nn.Linear(20, 64), *(nn.Tanh() for _ in range(30)), nn.Linear(64, 4)
        )

    sizes = []

    def measured(build_model, weights, examples, recipe, layers=None):
        sizes.append((len(examples), activation_bytes(build_model, weights, examples, recipe)))
        return layer_gradients(build_model, weights, examples, recipe, layers)

    monkeypatch.setattr(gradient_evidence, "MAX_PASS_BYTES", 2**18)
    monkeypatch.setattr(gradient_evidence, "layer_gradients", measured)
    compute_gradient_evidence(view_of(build), known_of(build), {0: CLIENTS[:1]})
    assert max(count for count, _ in sizes) > 8
    assert max(kept for _, kept in sizes) < 2**18


def test_small_layers_keep_all_of_their_matrices_and_large_ones_share_the_rest() -> None:
    positions = {"large": (9, 3000, 200), "small": (9, 3, 2), "dense": (1, 5000, 600)}
    of_one = {
        LayerNames(name, None): LayerGradients(torch.zeros(1, p, i), torch.zeros(1, p, o))
        for name, (p, i, o) in positions.items()
    }
    shares = matrix_shares(of_one, 1000)
    # The large layer needs 2.4 GB, and has what 24 kB of the small one leave of 1 GiB.
    rest = (2**30 - 24_000) / 2.4e9
    assert list(shares.values()) == pytest.approx([rest, 1, 1])
    assert set(matrix_shares(of_one, 400).values()) == {1}


def wide_convolutions() -> nn.Module:
    """Build a network of which nearly all weights are in its second convolution."""
    return nn.Sequential(
        nn.Unflatten(1, (1, 4, 5)),
        nn.Conv2d(1, 32, 2),
        nn.ReLU(),
        nn.Conv2d(32, 32, 2),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, 4),
    )


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_a_layer_too_large_for_memory_is_read_on_its_main_axes(
    monkeypatch, optimizer: str
) -> None:
    recipe = replace(
        checks.RECIPE, optimizer=optimizer, rate=0.2 if optimizer == "sgd" else 0.01
    )
    monkeypatch.setattr(checks, "build", wide_convolutions)
    monkeypatch.setattr(checks, "RECIPE", recipe)
    run, found = simulate_membership.__wrapped__(memorised=True), []
    for most_bytes in (2**30, 2**20, 1):  # 4.9 MB are all; 1 byte leaves one axis
        monkeypatch.setattr(gradient_evidence, "MAX_MATRIX_BYTES", most_bytes)
        compute = ComputeSettings(cache=MemoryTensorCache(), workers=1)
        known = replace(run.knowledge, compute=compute)
        found.append(mean_auc(evidence_in(run.transcript, known, CLIENTS)))
    assert found[1] > 0.93
    assert found[0] > found[1] > found[2] + 0.05
