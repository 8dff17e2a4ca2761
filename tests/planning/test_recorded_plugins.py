"""Plugins, networks and facts of a recording are found for its plan."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import ClassVar, get_type_hints

import pytest
from torch import nn

from overheard.algorithms.partial_sharing import PartialSharing
from overheard.auditing.inputs import Resources
from overheard.auditing.simulate import simulate
from overheard.core.plugin_registry import PluginRegistry
from overheard.defenses.local_dp import LocalDp
from overheard.defenses.mm_aug import MmAug
from overheard.learning.models.custom import Own
from overheard.learning.models.mlp import Mlp
from overheard.planning.apps.federated_app import FederatedApp
from overheard.planning.first_plan.request import FirstPlanRequest
from overheard.planning.first_plan.writing import write_first_plan
from overheard.planning.plan_check import check_plan
from overheard.planning.recorded_facts import read_checked_recording, read_recorded_facts
from overheard.planning.recorded_plugins import parse_model, parse_plugin, proposed_network
from overheard.plans.registries import ALGORITHMS, DEFENSES, MODELS
from tests.auditing.plans import SECURE_AGGREGATION, TINY, replace_tables
from tests.auditing.test_renamed_recording import copy_with_names

CODE = "mine.task:Net"


def test_parses_what_manifests_state():
    dp = LocalDp(clip=2.0, noise_multiplier=0.5)
    assert parse_plugin(repr(dp), DEFENSES) == dp
    assert parse_model(repr(Mlp(hidden=(8, 4)))) == Mlp(hidden=(8, 4))
    assert parse_model("mlp") == Mlp()
    stays = PartialSharing(stays=("head", "0.*"))
    assert parse_plugin(repr(stays), ALGORITHMS) == stays
    assert parse_plugin("MmAug(modes=3, extractor=None)", DEFENSES) == MmAug(modes=3)


@pytest.mark.parametrize(
    "text",
    [
        *("", "LeNet-5", "Mlp(hidden=__import__('os'))", "Mlp(3)", "Mlp(wide=1)", "(" * 500),
        *("Transformer(base='/dev/stdin')", "Mlp(hidden=7)", "Mlp(hidden=(2.5,))"),
        *(f"Mlp(hidden=({10**20},))", f"Mlp(hidden={(9,) * 2000})", "Transformer(depth=9999)"),
        *(
            "ConvNet(blocks=1000)",
            "DecafModules(modules=1000)",
            "Mlp(hidden=(8,))" + 10**6 * " ",
        ),
        *("own", CODE, repr(Own(CODE)), "Own('mine.task:Net')"),
    ],
)
def test_anything_else_is_no_plugin(text: str):
    assert parse_model(text) is None


@pytest.mark.parametrize("registry", [MODELS, DEFENSES, ALGORITHMS])
def test_no_setting_of_any_plugin_takes_a_name_of_code(registry: PluginRegistry[object]):
    tried = 0
    for plugin in registry.plugins().values():
        hints = get_type_hints(plugin)
        for field in fields(plugin):  # type: ignore[arg-type]
            if "str" in str(hints[field.name]):
                values = (f"{CODE!r}", f"({CODE!r},)", f"['x', ({CODE!r},)]")
                texts = [f"{plugin.__name__}({field.name}={value})" for value in values]
                assert [parse_plugin(text, registry) for text in texts] == [None] * 3
                tried += 1
    assert tried > 0


def test_a_plugin_of_another_package_gets_no_text(monkeypatch: pytest.MonkeyPatch):
    @dataclass(frozen=True)
    class Foreign:
        strength: float = 1.0
        module: str = ""
        name: ClassVar[str] = "foreign"

    monkeypatch.setattr(PluginRegistry, "plugins", lambda self: {"foreign": Foreign})
    monkeypatch.setattr(PluginRegistry, "origin", lambda self, name: "another package 1.0")
    assert parse_plugin("Foreign(strength=2.0)", DEFENSES) == Foreign(2.0)
    assert parse_plugin("Foreign(module='os.path')", DEFENSES) is None
    assert parse_model("foreign") is parse_model("Foreign()") is None


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        (CODE, CODE),
        (repr(Own(CODE)), CODE),
        *((text, None) for text in ("Own(reference='x')", "LeNet-5", "Mlp()", "")),
        ("Own(reference=__import__('os'))", None),
    ],
)
def test_tells_the_network_of_a_user_that_a_recording_names(text: str, reference: str | None):
    assert proposed_network(text) == reference


def test_the_sender_of_an_aggregate_is_no_client(tmp_path: Path):
    plan = replace_tables(TINY, arms=(SECURE_AGGREGATION,))
    simulate(
        plan,
        arm=SECURE_AGGREGATION.name,
        folder=tmp_path,
        resources=Resources(device="cpu", workers=1),
    )
    facts = read_checked_recording(tmp_path)
    assert facts.clients == TINY.data.clients
    assert not facts.reads_updates


HERE = Resources(device="cpu", workers=1)


class Net(nn.Sequential):
    """A user's own network with the tensors of the recording."""

    def __init__(self) -> None:
        super().__init__(nn.Flatten(), nn.Linear(64, 10))


@pytest.mark.parametrize("name_of", ["1.{1}", "arr_{0}", "module.{1}", "réseau 2.{1}"])
@pytest.mark.parametrize("are_turned", [False, True])
def test_a_first_plan_has_the_network_that_an_audit_accepts(
    simulated: Path, tmp_path: Path, name_of: str, are_turned: bool
):
    copy = copy_with_names(
        simulated,
        tmp_path / "copy",
        lambda place, name: name_of.format(place, name.rpartition(".")[2]),
        are_turned=are_turned,
    )
    app = FederatedApp((f"{__name__}:Net",))
    written = write_first_plan(FirstPlanRequest(read_recorded_facts(copy), app), HERE)
    assert repr(written.plan.training.model) == f"Own(reference='{__name__}:Net')"
    assert check_plan(written.plan, HERE, copy, with_estimate=False).can_run
