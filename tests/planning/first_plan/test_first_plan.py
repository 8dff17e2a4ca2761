"""A first plan runs, says what it leaves out, and never says what is not known."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn

from overheard.algorithms.adaptive import FedAdam
from overheard.algorithms.fed_avg import FedAvg
from overheard.auditing.inputs import Resources
from overheard.auditing.run import audit
from overheard.core.errors import PlanError
from overheard.core.messages import Broadcast, Update
from overheard.core.parties import SERVER, client
from overheard.core.seeds import Seed
from overheard.data.datasets.custom import Own
from overheard.data.datasets.no_examples import NoExamples
from overheard.planning.apps.app_training import AppTraining, StatedSetting
from overheard.planning.apps.federated_app import FederatedApp
from overheard.planning.first_plan.request import FirstPlanRequest
from overheard.planning.first_plan.task_guess import with_task_of_labels
from overheard.planning.first_plan.writing import write_first_plan
from overheard.planning.recorded_facts import read_recorded_facts
from overheard.plans.plan import parse_plan
from overheard.recorders.async_writer import AsyncWriter
from overheard.recorders.run_info import RunInfo
from tests.planning.conftest import STATED_RECIPE, STATED_TASK, ForeignRecording

HERE = Resources(device="cpu", workers=1)


SGD = AppTraining(
    tuple(
        StatedSetting(key, value, "train.py")
        for key, value in {
            "rate": 0.1,
            "epochs": 1.0,
            "batch": 10.0,
            "optimizer": "sgd",
            "momentum": 0.0,
            "weight_decay": 0.0,
        }.items()
    )
)
"""How an app trains, as far as a recipe can state it."""


class Net(nn.Sequential):
    """A user's own network with the tensors of the recording."""

    def __init__(self) -> None:
        super().__init__(nn.Flatten(), nn.Linear(64, 10))


class OtherNet(nn.Sequential):
    """A network of the same app with other tensors."""

    def __init__(self) -> None:
        super().__init__(nn.Flatten(), nn.Linear(64, 7))


def spare_digits(folder: Path) -> str:
    """Write an .npz with digits."""
    images, labels = load_digits(return_X_y=True)
    path = folder / "spare.npz"
    np.savez(path, x=images.reshape(-1, 8, 8)[:400], y=labels[:400])
    return str(path)


def test_everything_that_a_recording_states_is_in_its_plan(foreign: ForeignRecording):
    folder = foreign(task=STATED_TASK, model="Logistic()", recipe=STATED_RECIPE)
    written = write_first_plan(FirstPlanRequest(read_recorded_facts(folder)), HERE)
    plan = written.plan
    assert repr(plan.training.model) == "Logistic()"
    assert plan.training.recipe.batch == 10
    assert plan.training.rounds == 2
    assert plan.threats[0].knows == ("model", "recipe")
    assert written.attacks == ("llg", "ilrg")
    assert "auxiliary examples" in written.missing["decaf"]
    assert "# Left out: decaf needs labelled auxiliary examples" in written.text


def test_the_stated_algorithm_is_in_the_plan_with_its_settings(foreign: ForeignRecording):
    folder = foreign(
        task=STATED_TASK, model="Logistic()", algorithm="FedAdam(rate=0.3, tau=0.01)"
    )
    written = write_first_plan(FirstPlanRequest(read_recorded_facts(folder)), HERE)
    assert written.plan.training.algorithm == FedAdam(rate=0.3, tau=0.01)
    assert 'algorithm = { kind = "fed_adam", rate = 0.3, tau = 0.01 }' in written.text
    assert "taken for FedAvg" not in written.text


@pytest.mark.parametrize("stated", ["", "Own(rate=1)", "FedAdam(rate=-1)", "exec('1')\n[x]"])
def test_an_algorithm_that_is_not_known_is_called_so(foreign: ForeignRecording, stated: str):
    folder = foreign(task=STATED_TASK, model="Logistic()", algorithm=stated)
    written = write_first_plan(FirstPlanRequest(read_recorded_facts(folder)), HERE)
    assert written.plan.training.algorithm == FedAvg()
    assert "so it is taken for FedAvg" in written.text


def test_an_algorithm_that_the_recorded_recipe_rules_out_is_left_out(foreign: ForeignRecording):
    recipe = STATED_RECIPE | {"momentum": 0.5}
    folder = foreign(
        task=STATED_TASK, recipe=recipe, model="Logistic()", algorithm="Scaffold()"
    )
    written = write_first_plan(FirstPlanRequest(read_recorded_facts(folder)), HERE)
    assert written.plan.training.algorithm == FedAvg()


def test_a_first_plan_of_a_recording_runs(foreign: ForeignRecording, tmp_path: Path):
    folder = foreign(task=STATED_TASK, model="Logistic()", recipe=STATED_RECIPE)
    request = FirstPlanRequest(read_recorded_facts(folder), data=spare_digits(tmp_path))
    written = write_first_plan(request, HERE)
    assert {"decaf", "amortised"} <= set(written.attacks)
    plan = parse_plan(
        written.plan.model_copy(update={"threats": written.plan.threats[:1]}).toml(), ""
    )
    found = audit(plan, tmp_path / "out", recording=folder, resources=HERE)
    attacks = {one.cell.part for one in found.findings}
    assert attacks == set(written.attacks) - {"amortised"}


def test_without_recipe_no_attacker_knows_it(foreign: ForeignRecording, tmp_path: Path):
    folder = foreign(task=STATED_TASK, model="Logistic()")
    request = FirstPlanRequest(read_recorded_facts(folder), data=spare_digits(tmp_path))
    written = write_first_plan(request, HERE)
    assert all("recipe" not in threat.knows for threat in written.plan.threats)
    assert len(written.plan.threats[1].virtual.recipes) == 3
    assert "decaf" in written.missing


def test_the_network_of_an_app_is_recognised_by_its_tensors(foreign: ForeignRecording):
    app = FederatedApp((f"{__name__}:OtherNet", f"{__name__}:Net"), training=SGD)
    written = write_first_plan(FirstPlanRequest(read_recorded_facts(foreign()), app), HERE)
    assert repr(written.plan.training.model) == f"Own(reference='{__name__}:Net')"
    assert written.attacks == ("llg", "ilrg")


def test_a_shape_that_nothing_states_is_called_a_guess(
    foreign: ForeignRecording, tmp_path: Path
):
    app = FederatedApp((f"{__name__}:Net",))
    facts = read_recorded_facts(foreign())
    guessed = write_first_plan(FirstPlanRequest(facts, app), HERE)
    assert "This one is a guess" in guessed.text.partition("source =")[0]
    given = write_first_plan(FirstPlanRequest(facts, app, spare_digits(tmp_path)), HERE)
    assert "a guess, which" not in given.text


def test_says_what_to_give_if_no_attack_can_run(foreign: ForeignRecording):
    with pytest.raises(PlanError, match=r"--data FILE.*--model package.module:Class"):
        write_first_plan(FirstPlanRequest(read_recorded_facts(foreign())), HERE)


def test_a_simulation_has_arms_to_compare_and_fits_its_data(tmp_path: Path):
    written = write_first_plan(FirstPlanRequest(data=spare_digits(tmp_path)), HERE)
    assert [arm.name for arm in written.plan.arms] == ["no defense", "local DP"]
    assert not written.missing
    assert "amortised" in written.attacks


def test_names_from_a_recording_cannot_leave_their_string(foreign: ForeignRecording):
    names = ['"]\n[x]\n#', "\x1b]0;owned\x07", *"23456789"]
    task = STATED_TASK | {"class_names": names}
    folder = foreign(task=task, model="Logistic()", recipe=STATED_RECIPE)
    written = write_first_plan(FirstPlanRequest(read_recorded_facts(folder)), HERE)
    assert tomllib.loads(written.text)["data"]["source"]["class_names"] == names
    assert "\x1b" not in written.text


def test_a_run_of_overheard_has_a_plan_already(simulated: Path):
    with pytest.raises(PlanError, match="was simulated by Overheard"):
        read_recorded_facts(simulated)


ONE_OUTPUT = {"1.weight": (1, 3), "1.bias": (1,)}


def single_output(
    folder: Path, shapes: Mapping[str, tuple[int, ...]] = MappingProxyType(ONE_OUTPUT)
) -> Path:
    """Record three clients and eight rounds of a network, by default with one output."""
    clients = [client(number) for number in range(3)]
    generator = Seed(0).generator()

    def draw() -> dict[str, torch.Tensor]:
        return {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}

    writer = AsyncWriter(folder, RunInfo("flower"))
    for _ in range(8):
        writer.begin_round([SERVER])
        writer.write(SERVER, frozenset(clients), lambda: Broadcast(draw()))
        for one in clients:
            writer.write(one, frozenset({SERVER}), lambda: Update(draw(), 9))
        writer.commit()
    writer.close()
    return folder


def test_a_recorded_model_with_one_output_is_taken_for_a_regression(tmp_path: Path):
    folder = single_output(tmp_path / "recording")
    written = write_first_plan(FirstPlanRequest(read_recorded_facts(folder)), HERE)
    assert written.plan.data.source == NoExamples(("number 0",), (1,), task="regression")
    assert written.plan.training.recipe.loss == "squared_error"
    assert written.attacks == ("shift",)
    found = audit(written.plan, tmp_path / "out", recording=folder, resources=HERE)
    assert {one.cell.part for one in found.findings} == {"shift"}


class OneLogit(nn.Module):
    """The network of `single_output`, which drops the axis of its output."""

    def __init__(self) -> None:
        super().__init__()
        self.add_module("1", nn.Linear(3, 1))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return a logit for each example."""
        outputs: torch.Tensor = self.get_submodule("1")(inputs).squeeze(1)
        return outputs


INPUTS = np.random.default_rng(0).normal(size=(400, 3)).astype(np.float32)


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        ((INPUTS.sum(1) > 0).astype(np.float32), "classification"),
        (np.round(INPUTS.sum(1)).astype(int), "regression"),
        (INPUTS.sum(1), "regression"),
    ],
)
def test_labels_tell_what_a_model_with_one_output_predicts(
    tmp_path: Path, labels: np.ndarray, kind: str
):
    facts = read_recorded_facts(single_output(tmp_path / "recording"))
    np.savez(tmp_path / "spare.npz", x=INPUTS, y=labels)
    rows = np.column_stack((INPUTS, labels))
    table = tmp_path / "spare.csv"
    np.savetxt(table, rows, delimiter=",", header="a,b,c,label", comments="")
    for name in ("spare.npz", "spare.csv"):
        source = with_task_of_labels(Own(str(tmp_path / name)), facts, ())
        assert source.load(None).task.kind == kind
        given = with_task_of_labels(Own(str(tmp_path / name)), facts, ("task = 'regression'",))
        assert given == Own(str(tmp_path / name)), "what the user states is kept"


def test_a_network_with_one_logit_is_asked_about_label_shares(tmp_path: Path):
    facts = read_recorded_facts(single_output(tmp_path / "recording"))
    np.savez(tmp_path / "spare.npz", x=INPUTS, y=INPUTS.sum(1) > 0)
    app = FederatedApp((f"{__name__}:OneLogit",), training=SGD)
    written = write_first_plan(
        FirstPlanRequest(facts, app, data=str(tmp_path / "spare.npz")), HERE
    )
    assert not written.networks, "the network of the app is taken"
    assert {"decaf", "bias_inversion", "ilrg", "llg"} <= set(written.attacks)


@pytest.mark.parametrize(("rows", "name"), [(1, "binary_logistic"), (4, "logistic")])
def test_the_arrays_of_a_linear_model_need_no_network(tmp_path: Path, rows: int, name: str):
    # As Flower's quickstart-sklearn: coef_ and intercept_, by position.
    folder = single_output(tmp_path / "recording", {"0": (rows, 3), "1": (rows,)})
    labels = np.arange(400) % (2 if rows == 1 else rows)
    np.savez(tmp_path / "spare.npz", x=INPUTS, y=labels)
    facts = read_recorded_facts(folder)
    written = write_first_plan(FirstPlanRequest(facts, data=str(tmp_path / "spare.npz")), HERE)
    assert written.plan.training.model.name == name
    assert {"llg", "mean_softmax"} <= set(written.attacks)


def numbers() -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs with a number to predict of each."""
    inputs = torch.randn(400, 3, generator=Seed(1).generator())
    return inputs, inputs.sum(1)


def test_data_without_classes_get_attacks_on_single_records():
    written = write_first_plan(FirstPlanRequest(data=f"{__name__}:numbers"), HERE)
    on_records = ("whitened_membership", "lira_pooled", "loss_membership")
    assert written.attacks == (*on_records, "target_regression")
    assert "auxiliary_per_class" not in written.text
    assert 'split = "iid"' in written.text
    assert written.plan.training.recipe.loss == "squared_error"
    assert written.plan.data.candidates is not None


def test_says_what_was_read_of_the_data_and_takes_settings_of_reading(tmp_path: Path) -> None:
    path = tmp_path / "cases.csv"
    lines = [f"{number * 7919 % 400 / 8},{number % 5},{number % 2}" for number in range(400)]
    path.write_text("\n".join(lines))
    read = ("header_lines = 0", 'left_out = ["1"]', 'label = "2"')
    written = write_first_plan(FirstPlanRequest(data=str(path), read=read), HERE)
    said = " ".join(written.data)
    assert "1 of numbers (0 0 to 49.875)" in said
    assert "Classes: 0 (200), 1 (200)." in said
    assert "Left out: column '1', as stated." in said
    assert "header_lines = 0" in written.text
    with pytest.raises(PlanError, match=r"header_line: .*did you mean 'header_lines'"):
        write_first_plan(FirstPlanRequest(data=str(path), read=("header_line = 0",)), HERE)


def test_states_the_accuracy_of_the_recorded_model_and_what_is_assumed(
    tmp_path: Path, foreign: ForeignRecording
) -> None:
    facts, network = read_recorded_facts(foreign()), f"{__name__}:Net"
    request = FirstPlanRequest(facts, data=spare_digits(tmp_path), model=network)
    written = write_first_plan(request, HERE)
    accuracy = next(one for one in written.data if "The last recorded model is right" in one)
    assert accuracy[:40] in written.text
