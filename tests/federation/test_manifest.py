from overheard.archive.manifest import DefenseRecord
from overheard.core.defense import Defense
from overheard.federation.manifest import record_defense


class Silence(Defense):
    """Changes nothing."""

    name = "silence"
    source = "this test"
    enforced_at = "client"
    switched_off_by = "the client"

    def __repr__(self) -> str:
        return "Silence()"


def test_a_defense_is_recorded_with_its_settings_and_enforcing_party() -> None:
    assert record_defense(Silence()) == DefenseRecord(
        "silence", "Silence()", "client", "the client"
    )
