"""Types and shapes are checked in this suite, without recompiling other modules."""

import sys
from collections.abc import Iterator

import pytest
import torch
from jaxtyping import Float, TypeCheckError
from torch import Tensor

from overheard.core.seeds import Seed
from overheard.findings.number_format import format_number
from tests.typed import CHECKED_CALLS, begin_test, checked


@pytest.fixture(autouse=True)
def types_are_checked(pytestconfig: pytest.Config) -> None:
    if not pytestconfig.getoption("jaxtyping_packages"):
        pytest.skip("types are not checked in this run")


def test_refuses_a_wrong_argument() -> None:
    with pytest.raises(TypeCheckError, match="violates type hint"):
        format_number("a third")  # type: ignore[arg-type]


def test_refuses_a_wrong_field() -> None:
    with pytest.raises(TypeCheckError, match="violates type hint"):
        Seed("one")  # type: ignore[arg-type]


def test_checks_return_values() -> None:
    @checked
    def half(number: int) -> int:
        return number / 2 if number % 2 else number // 2  # type: ignore[return-value]

    assert half(4) == 2
    for number in (3, "four"):
        with pytest.raises(TypeCheckError):
            half(number)


def test_each_test_checks_the_first_calls_and_then_ever_fewer() -> None:
    @checked
    def identity(number: int) -> int:
        return number

    refused = []
    for call in range(1, 4 * CHECKED_CALLS + 1):
        try:
            identity("one")  # type: ignore[arg-type]
        except TypeCheckError:
            refused.append(call)
    assert CHECKED_CALLS == 16
    assert refused == [*range(1, 17), 32, 64]
    begin_test()
    with pytest.raises(TypeCheckError):
        identity("one")  # type: ignore[arg-type]


def test_an_axis_has_one_length_per_call() -> None:
    @checked
    def concatenate(
        left: Float[Tensor, " classes"], right: Float[Tensor, " classes"]
    ) -> Float[Tensor, " classes"]:
        return torch.cat([left, right])[: len(left) + (len(left) > 2)]

    one, two, three = (torch.zeros(length) for length in (1, 2, 3))
    assert len(concatenate(one, one)) == 1
    assert len(concatenate(two, two)) == 2
    with pytest.raises(TypeCheckError):
        concatenate(one, two)
    with pytest.raises(TypeCheckError):
        concatenate(three, three)


def test_checks_a_generator_when_it_is_called() -> None:
    @checked
    def each(values: Float[Tensor, " classes"]) -> Iterator[float]:
        yield from values.tolist()

    @checked
    def first(values: Float[Tensor, " classes"], other: Float[Tensor, " rounds"]) -> float:
        return next(each(other))

    assert first(torch.zeros(2), torch.ones(3)) == 1
    with pytest.raises(TypeCheckError):
        each([1.0])


def test_checks_methods_of_every_kind() -> None:
    class Counter:
        @checked
        @classmethod
        def from_number(cls, number: int) -> int:
            return number

        @checked
        @staticmethod
        def identity(number: int) -> int:
            return number

        @checked
        @property
        def count(self) -> int:
            return "none"  # type: ignore[return-value]

    assert Counter.from_number(1) == Counter.identity(1) == 1
    for wrong in (
        lambda: Counter.from_number("1"),
        lambda: Counter.identity("1"),
        lambda: Counter().count,
    ):
        with pytest.raises(TypeCheckError):
            wrong()


def test_other_modules_use_their_ordinary_bytecode() -> None:
    recompiled = [
        name
        for name, module in sys.modules.items()
        if "opt-jaxtyping" in str(vars(module).get("__cached__"))
        and not name.startswith("overheard")
    ]
    assert recompiled == []
