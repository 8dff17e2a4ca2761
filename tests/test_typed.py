"""Types and shapes are checked in this suite, and at no cost to the modules of others."""

import sys

import pytest
from jaxtyping import TypeCheckError

from overheard.findings.figures import digits
from tests.typed import lazily


@pytest.fixture(autouse=True)
def checked(pytestconfig: pytest.Config) -> None:
    if not pytestconfig.getoption("jaxtyping_packages"):
        pytest.skip("types are not checked in this run")


def test_a_wrong_argument_to_a_function_of_ours_is_refused() -> None:
    with pytest.raises(TypeCheckError):
        digits("a third")  # type: ignore[arg-type]


def test_a_function_is_checked_from_its_first_call_on() -> None:
    def half(number: int) -> float:
        return number / 2

    check = lazily(half)
    for _ in range(2):
        with pytest.raises(Exception, match="violates type hint"):
            check("one")  # type: ignore[arg-type]
    assert check(3) == 1.5


def test_modules_of_others_are_found_compiled() -> None:
    strays = [
        name
        for name, module in sys.modules.items()
        if "opt-jaxtyping" in str(vars(module).get("__cached__"))
        and not name.startswith("overheard")
    ]
    assert strays == []
