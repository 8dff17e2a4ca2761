"""A failure of Overheard is a printable reason, and is raised where failures are looked for."""

import pytest

from overheard.core.errors import OutputError, PlanError, WorkerError
from overheard.core.failures import DEBUG_VARIABLE, describe_own_failure, is_own_failure


def test_says_what_failed_with_the_class_and_the_message_on_one_printable_line(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.delenv(DEBUG_VARIABLE)
    error = ArithmeticError("singular\n\x1b[31m matrix")
    told = describe_own_failure("the attack llg", error)
    assert told == "the attack llg failed: ArithmeticError: singular \\x1b[31m matrix"
    assert describe_own_failure("it", KeyError()) == "it failed: KeyError"
    assert len(describe_own_failure("it", ValueError("x" * 10_000))) < 400


def test_is_raised_in_tests_and_with_debug():
    with pytest.raises(ArithmeticError):
        describe_own_failure("the attack llg", ArithmeticError("singular"))


@pytest.mark.parametrize("error", [PlanError("mend"), OutputError("full"), OSError("disk")])
def test_what_a_user_can_correct_is_no_failure_and_always_raised(
    error: Exception, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv(DEBUG_VARIABLE)
    assert not is_own_failure(error)
    with pytest.raises(type(error)):
        describe_own_failure("the attack llg", error)


def test_training_that_fails_in_a_worker_is_a_failure_of_the_attack_that_asked_for_it():
    assert is_own_failure(WorkerError("training failed"))
