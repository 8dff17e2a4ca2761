"""Dead layers, clients without examples, empty rounds and a single client fail no attack.

In tests a failure of Overheard is raised, so an audit that ends has none.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from overheard.archive.layout import truth_path
from overheard.archive.manifest import read_manifest
from overheard.archive.reader import open_transcript
from overheard.archive.recorder import Recorder
from overheard.archive.truth import write_truth
from overheard.auditing.folder import AuditFolder
from overheard.core.messages import Message, Update, Weights
from overheard.core.parties import COHORT, client
from overheard.core.true_facts.label_counts import LabelCounts
from overheard.findings.audit import Audit
from overheard.learning.models.mlp import Mlp
from overheard.plans.plan import Plan, parse_plan
from tests.archive.stored_truth import read_truth
from tests.auditing.conftest import audit_here
from tests.auditing.plans import DATA, NO_DEFENSE, TINY, TRAINING, replace_tables

SERVER_ATTACKS = """
[[threats]]
observers = ["server"]
attacks = ["bias_inversion", "mean_softmax", "llg", "ilrg", "decaf", "ramakrishna", "zlg",
           "shift", "validation_shift", "metadata_link"]
"""
CLIENT_ATTACKS = """
[[threats]]
observers = ["client/0"]
attacks = ["bias_inversion", "llg", "shift"]
about = "cohort"
[recording]
accept = "A run like this is what is tested."
"""
PLAN = replace_tables(TINY, training=TRAINING.model_copy(update={"model": Mlp(hidden=(4,))}))


def with_attacks(plan: Plan, attacks: str = SERVER_ATTACKS + CLIENT_ATTACKS) -> Plan:
    return parse_plan(plan.toml().partition("[[threats]]")[0] + attacks, "plan")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of a network with a hidden layer. Change nothing in it."""
    folder = tmp_path_factory.mktemp("run")
    audit_here(PLAN, folder)
    return AuditFolder(folder).run_path("no defense", 0)


def is_idle(message: Message) -> bool:
    return isinstance(message.body, Update) and message.body.examples == 0


def audit_changed(
    run: Path,
    folder: Path,
    change: Callable[[Message], Message | None],
    *,
    are_idle: bool = True,
) -> Audit:
    """Audit the run with other messages: changed ones, or fewer of them if they become None."""
    recorder, messages = (
        Recorder(folder / "run", read_manifest(run)),
        open_transcript(run).messages,
    )
    kept = [changed for one in messages if (changed := change(one)) is not None]
    for number in range(max(one.round for one in messages) + 1):
        with recorder.open_round() as opened:
            for message in kept:
                if message.round == number:
                    opened.record(message)
    truth = read_truth(run)
    sent = {(one.round, one.sender) for one in kept if isinstance(one.body, Update)}
    idle = {(one.round, one.sender) for one in kept if is_idle(one)}
    counts = {
        key: 0 * held if are_idle and key in idle else held
        for key, held in truth.facts.need(LabelCounts).counts.items()
        if key in sent
    }
    write_truth(folder / "run", truth.having(LabelCounts(counts)))
    assert truth_path(folder / "run").exists()
    return audit_here(with_attacks(PLAN), folder / "out", recording=folder / "run")


def with_delta(message: Message, delta: Callable[[Weights], Weights]) -> Message:
    assert isinstance(message.body, Update)
    return replace(message, body=replace(message.body, delta=delta(message.body.delta)))


@pytest.mark.parametrize("dead", ["first", "last", "all"])
def test_a_layer_whose_gradients_are_all_zero(dead: str, run: Path, tmp_path: Path):
    def silence(delta: Weights) -> Weights:
        first = next(iter(delta)).rpartition(".")[0]
        return {
            name: torch.zeros_like(one)
            if dead == "all" or name.startswith(first) == (dead == "first")
            else one
            for name, one in delta.items()
        }

    found = audit_changed(
        run,
        tmp_path,
        lambda one: with_delta(one, silence) if isinstance(one.body, Update) else one,
    )
    assert found.findings


def test_a_client_that_trains_on_no_example(run: Path, tmp_path: Path):
    def idle(message: Message) -> Message:
        if not isinstance(message.body, Update) or message.sender != client(1):
            return message
        still = with_delta(message, lambda delta: {k: v * 0 for k, v in delta.items()})
        assert isinstance(still.body, Update)
        return replace(still, body=replace(still.body, examples=0))

    found = audit_changed(run, tmp_path, idle)
    targets = {one.target for one in found.findings if one.cell.question == "label_shares"}
    assert targets == {client(0), client(2), COHORT}


def test_an_update_that_is_said_to_be_of_no_example_but_is_not_zero_is_attacked(
    run: Path, tmp_path: Path
):
    found = audit_changed(
        run,
        tmp_path,
        lambda one: (
            replace(one, body=replace(one.body, examples=0))
            if isinstance(one.body, Update) and one.sender == client(1)
            else one
        ),
        are_idle=False,
    )
    assert {client(0), client(1), client(2)} <= {one.target for one in found.findings}


@pytest.mark.parametrize("empty", [0, 1])
def test_a_round_without_any_update(empty: int, run: Path, tmp_path: Path):
    found = audit_changed(
        run,
        tmp_path,
        lambda one: None if isinstance(one.body, Update) and one.round == empty else one,
    )
    assert {number for one in found.findings for number in one.cell.rounds} == {1 - empty}


def test_a_run_of_which_a_single_client_was_recorded(run: Path, tmp_path: Path):
    found = audit_changed(
        run,
        tmp_path,
        lambda one: None if isinstance(one.body, Update) and one.sender != client(0) else one,
    )
    assert client(0) in {one.target for one in found.findings}


def test_a_simulated_federation_of_a_single_client(tmp_path: Path):
    plan = replace_tables(PLAN, data=DATA.model_copy(update={"clients": 1}), arms=(NO_DEFENSE,))
    found = audit_here(with_attacks(plan, SERVER_ATTACKS), tmp_path)
    assert {one.target for one in found.findings} == {client(0)}
