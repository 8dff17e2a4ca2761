"""Types and shapes are checked in this suite, and at no cost to the modules of others."""

import sys
from collections.abc import Iterator

import pytest
import torch
from jaxtyping import Float, TypeCheckError
from torch import Tensor

from overheard.core.seeds import Seed
from overheard.findings.figures import digits
from tests.typed import checked


@pytest.fixture(autouse=True)
def types_are_checked(pytestconfig: pytest.Config) -> None:
    if not pytestconfig.getoption("jaxtyping_packages"):
        pytest.skip("types are not checked in this run")


def test_a_wrong_argument_to_a_function_of_ours_is_refused() -> None:
    with pytest.raises(TypeCheckError, match="violates type hint"):
        digits("a third")  # type: ignore[arg-type]


def test_a_value_of_ours_with_a_wrong_field_is_refused() -> None:
    with pytest.raises(TypeCheckError, match="violates type hint"):
        Seed("one")  # type: ignore[arg-type]


def test_what_a_function_gives_is_checked_as_are_its_arguments() -> None:
    @checked
    def half(number: int) -> int:
        return number / 2 if number % 2 else number // 2  # type: ignore[return-value]

    assert half(4) == 2
    for number in (3, "four"):
        with pytest.raises(TypeCheckError):
            half(number)


def test_an_axis_has_one_length_within_a_call_and_another_in_the_next() -> None:
    @checked
    def joined(
        left: Float[Tensor, " classes"], right: Float[Tensor, " classes"]
    ) -> Float[Tensor, " classes"]:
        return torch.cat([left, right])[: len(left) + (len(left) > 2)]

    one, two, three = (torch.zeros(length) for length in (1, 2, 3))
    assert len(joined(one, one)) == 1
    assert len(joined(two, two)) == 2
    with pytest.raises(TypeCheckError):
        joined(one, two)
    with pytest.raises(TypeCheckError):
        joined(three, three)


def test_a_generator_is_checked_when_it_is_called_and_by_itself() -> None:
    @checked
    def each(values: Float[Tensor, " classes"]) -> Iterator[float]:
        yield from values.tolist()

    @checked
    def first(values: Float[Tensor, " classes"], other: Float[Tensor, " rounds"]) -> float:
        return next(each(other))

    assert first(torch.zeros(2), torch.ones(3)) == 1
    with pytest.raises(TypeCheckError):
        each([1.0])


def test_methods_of_every_kind_are_checked() -> None:
    class Counter:
        @checked
        @classmethod
        def made(cls, number: int) -> int:
            return number

        @checked
        @staticmethod
        def told(number: int) -> int:
            return number

        @checked
        @property
        def count(self) -> int:
            return "none"  # type: ignore[return-value]

    assert Counter.made(1) == Counter.told(1) == 1
    for wrong in (
        lambda: Counter.made("1"),
        lambda: Counter.told("1"),
        lambda: Counter().count,
    ):
        with pytest.raises(TypeCheckError):
            wrong()


def test_modules_of_others_are_found_compiled() -> None:
    strays = [
        name
        for name, module in sys.modules.items()
        if "opt-jaxtyping" in str(vars(module).get("__cached__"))
        and not name.startswith("overheard")
    ]
    assert strays == []
