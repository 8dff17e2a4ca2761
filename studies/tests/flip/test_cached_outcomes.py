from pathlib import Path

import pytest

from overheard.core.errors import OutputError
from overheard_studies.flip.attribute_tests import QuadrupleOutcome
from overheard_studies.flip.cached_outcomes import load_outcomes, save_outcomes

OUTCOMES = (QuadrupleOutcome("samples", "frog-cat", 1, 30, 40),)


def test_outcomes_are_loaded_only_with_the_settings_they_were_saved_with(
    tmp_path: Path,
) -> None:
    path = tmp_path / "answers" / "row1.json"
    assert load_outcomes(path, "ten epochs") is None
    save_outcomes(path, "ten epochs", OUTCOMES)
    assert load_outcomes(path, "ten epochs") == OUTCOMES
    assert load_outcomes(path, "twenty epochs") is None


def test_a_damaged_file_is_refused_with_a_remedy(tmp_path: Path) -> None:
    path = tmp_path / "row1.json"
    save_outcomes(path, "", OUTCOMES)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(OutputError, match="remove it"):
        load_outcomes(path, "")
