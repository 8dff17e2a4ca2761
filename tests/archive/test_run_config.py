"""Settings of clients' training in a configuration, by their usual names."""

from pathlib import Path

import pytest

from overheard.archive.run_config import (
    parse_setting,
    plain_name,
    read_run_config,
    run_config_text,
)
from overheard.core.errors import TranscriptError


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("Learning_Rate", "learning-rate"),
        ("train.lr", "lr"),
        ("client/lr", "lr"),
        ("server.lr", ""),
        ("evaluate/batch_size", ""),
    ],
)
def test_names_are_compared_by_their_last_part(name: str, plain: str):
    assert plain_name(name) == plain


@pytest.mark.parametrize(
    ("key", "value", "parsed"),
    [
        ("rate", "0.5", 0.5),
        ("rate", 0, None),
        ("rate", "1e400", None),
        ("rate", True, None),
        ("epochs", "4", 4.0),
        ("epochs", 0.5, None),
        ("batch", -1, None),
        ("momentum", 1.0, None),
        ("weight_decay", 0, 0.0),
        ("optimizer", "AdamW", "adamw"),
        ("optimizer", 3, None),
        ("rate", [0.1], None),
    ],
)
def test_impossible_values_are_none(key: str, value: object, parsed: object):
    assert parse_setting(key, value) == parsed


def test_only_settings_of_the_training_are_written(tmp_path: Path):
    text = run_config_text({"lr": 0.1, "password": "x", "optimizer": "a" * 65, "epochs": 2})
    (tmp_path / "run_config.json").write_text(text)
    assert read_run_config(tmp_path) == {"lr": 0.1, "epochs": 2}
    assert run_config_text({"password": "x"}) == ""


def test_a_recording_without_the_file_states_nothing(tmp_path: Path):
    assert read_run_config(tmp_path) == {}


@pytest.mark.parametrize("text", ["{", "[" * 100_000])
def test_a_damaged_file_is_an_error_of_the_recording(tmp_path: Path, text: str):
    (tmp_path / "run_config.json").write_text(text)
    with pytest.raises(TranscriptError, match=r"run_config\.json is damaged"):
        read_run_config(tmp_path)
