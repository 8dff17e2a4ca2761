"""The best source of each setting counts, and what is missing or contradicts is told."""

from dataclasses import replace
from pathlib import Path

import pytest

from overheard.archive.manifest import Manifest
from overheard.core.parties import SERVER
from overheard.core.recipe import Recipe
from overheard.planning.apps.app_training import AppTraining, StatedSetting
from overheard.planning.apps.federated_app import FederatedApp
from overheard.planning.recorded_facts import RecordedFacts
from overheard.planning.training_facts import WITHOUT_OPTIMIZER, read_training_facts

MANIFEST = Manifest(None, "", None, (), (), None)
RECORDING = RecordedFacts(Path("run"), MANIFEST, {"w": (2, 2)}, 3, 2, SERVER, True, False)

ADAM = (
    StatedSetting("optimizer", "adam", "app/task.py, line 3"),
    StatedSetting("momentum", 0.0, "app/task.py, line 3"),
    StatedSetting("weight_decay", 0.0, "app/task.py, line 3"),
)
PYPROJECT = {"learning-rate": 0.01, "local-epochs": 1, "train.batch_size": 16}


def numbers(recording: RecordedFacts | None, app: FederatedApp) -> dict[str, object]:
    found = read_training_facts(recording, app).settings
    return {key: one.value for key, one in found.items()}


def test_messages_go_before_the_configuration_of_the_run_and_that_before_the_app():
    recording = replace(
        RECORDING,
        configs=({"learning-rate": "0.5"},),
        run_config={"learning-rate": 0.3, "local-epochs": 4.0},
    )
    app = FederatedApp((), PYPROJECT, AppTraining(ADAM))
    facts = read_training_facts(recording, app)
    assert [facts.number(key, 0) for key in ("rate", "epochs", "batch")] == [0.5, 4, 16]
    assert facts.settings["rate"].source == "the messages of the recording: learning-rate"
    assert facts.optimizer == "adam"
    assert facts.is_complete
    told = " ".join(facts.doubts)
    assert "not 0.01 (pyproject.toml of the Flower app: learning-rate)" in told
    assert "epochs is 4 (the configuration of the run: local-epochs), not 1 (" in told


def test_the_recipe_that_the_recording_states_goes_before_everything():
    recipe = Recipe(0.2, 3, 8, "adamw", weight_decay=0.01)
    recording = replace(
        RECORDING,
        manifest=replace(MANIFEST, recipe=recipe),
        configs=({"lr": "0.5"},),
    )
    facts = read_training_facts(recording, FederatedApp((), PYPROJECT, AppTraining(ADAM)))
    assert (facts.number("rate", 0), facts.optimizer) == (0.2, "adamw")
    assert facts.is_complete
    assert "not 0.5 (the messages of the recording: lr)" in " ".join(facts.doubts)


@pytest.mark.parametrize("left_out", ["learning-rate", "local-epochs", "train.batch_size"])
def test_a_recipe_is_known_only_if_each_of_its_parts_is(left_out: str):
    config = {name: value for name, value in PYPROJECT.items() if name != left_out}
    facts = read_training_facts(RECORDING, FederatedApp((), config, AppTraining(ADAM)))
    assert not facts.is_complete
    assert any("not found: the plan has a placeholder" in one for one in facts.doubts)
    assert read_training_facts(
        RECORDING, FederatedApp((), PYPROJECT, AppTraining(ADAM))
    ).is_complete


def test_an_optimizer_that_was_not_found_is_told_and_what_it_costs():
    facts = read_training_facts(RECORDING, FederatedApp((), PYPROJECT))
    assert facts.doubts == (WITHOUT_OPTIMIZER,)
    assert not facts.is_complete
    several = AppTraining(optimizers=("SGD in a.py, line 1", "Adam in b.py, line 2"))
    told = read_training_facts(RECORDING, FederatedApp((), PYPROJECT, several)).doubts
    assert "SGD in a.py, line 1; Adam in b.py, line 2, so none is taken" in told[0]


def test_all_that_was_not_found_is_in_one_sentence():
    facts = read_training_facts(RECORDING, FederatedApp((), {}, AppTraining(ADAM)))
    assert facts.doubts == ("rate, epochs and batch not found: the plan has placeholders",)


def test_an_optimizer_that_no_recipe_has_is_not_taken():
    recording = replace(RECORDING, configs=({"optimizer": "RMSprop"},))
    facts = read_training_facts(recording, FederatedApp((), PYPROJECT, AppTraining(ADAM)))
    assert "the optimizer rmsprop" in facts.doubts[0]
    assert not facts.is_complete


def test_a_setting_that_changes_over_rounds_is_not_known():
    recording = replace(RECORDING, configs=({"lr": "0.5"}, {"lr": "0.25"}, {"lr": "0.125"}))
    facts = read_training_facts(recording, FederatedApp((), PYPROJECT, AppTraining(ADAM)))
    assert "rate changes in the messages of the recording: 0.5, 0.25, 0.125" in facts.doubts[0]
    assert not facts.is_complete


def test_a_number_in_the_code_that_messages_contradict_is_not_known():
    code = AppTraining((*ADAM, StatedSetting("rate", 0.001, "app/task.py, line 3")))
    recording = replace(RECORDING, configs=({"lr": "0.5"},))
    facts = read_training_facts(recording, FederatedApp((), PYPROJECT, code))
    assert facts.number("rate", 0) == 0.5
    assert not facts.is_complete


def test_the_name_that_the_code_reads_goes_before_the_usual_ones():
    code = AppTraining(ADAM, {"rate": "step_size"})
    app = FederatedApp((), PYPROJECT | {"step-size": 0.7}, code)
    assert numbers(None, app)["rate"] == 0.7


def test_the_rate_of_the_server_is_not_taken_for_the_clients():
    code = AppTraining(ADAM, server_names=frozenset({"learning-rate"}))
    facts = read_training_facts(RECORDING, FederatedApp((), PYPROJECT, code))
    assert "rate" not in facts.settings
    assert any("is the server's, not the clients'" in one for one in facts.doubts)


@pytest.mark.parametrize(
    "config",
    [
        {"lr": "fast"},
        {"lr": "nan"},
        {"lr": "-1"},
        {"lr": "1e999"},
        {"server.lr": "1"},
        {"lr": ""},
    ],
)
def test_impossible_values_and_those_of_others_are_left_out(config: dict[str, str]):
    assert "rate" not in numbers(replace(RECORDING, configs=(config,)), FederatedApp())


def test_momentum_belongs_to_sgd_alone():
    recording = replace(RECORDING, configs=({"momentum": "0.9"},))
    facts = read_training_facts(recording, FederatedApp((), PYPROJECT, AppTraining(ADAM)))
    assert facts.number("momentum", 1) == 0
