"""What a builder of a network is called with."""

import pytest

from overheard.core.custom_code.builder_arguments import (
    Argument,
    RunConfig,
    bind_arguments,
)
from overheard.core.task import Task

TASK = Task((4,), ("a", "b"))
CONFIG: tuple[Argument, ...] = (("model.name", "tiny"), ("lora-rank", 8), ("seed", 3))


def takes_task(shape_of: Task) -> None:
    """Build for a task."""


def takes_config(run_config: RunConfig) -> None:
    """Build by a configuration."""


def takes_rank(lora_rank: int, name: str, dropout: float = 0.1) -> None:
    """Build by single values."""


def takes_part(model_cfg: RunConfig) -> None:
    """Build by a part of the configuration."""


def test_a_first_parameter_without_a_value_gets_the_task() -> None:
    assert bind_arguments(takes_task, TASK, ()).args == (TASK,)


def test_a_configuration_is_given_whole() -> None:
    (given,) = bind_arguments(takes_config, TASK, CONFIG).args
    assert given["lora-rank"] == given.lora_rank == 8
    assert given.model.name == "tiny"


def test_parameters_get_the_values_of_their_names() -> None:
    bound = bind_arguments(takes_rank, TASK, CONFIG)
    assert bound.arguments == {"lora_rank": 8, "name": "tiny"}


def test_a_part_of_the_configuration_is_given_by_its_name() -> None:
    assert bind_arguments(takes_part, TASK, CONFIG).args == ({"name": "tiny"},)


def test_a_parameter_without_a_value_is_named() -> None:
    with pytest.raises(TypeError, match="its parameter lora_rank has no value: give one in"):
        bind_arguments(takes_rank, None, ())
