"""How all tests are run: types are checked at every call."""

from tests import typed

typed.leave_bytecode_of_others_alone()
