from dataclasses import replace
from pathlib import Path

import pytest

from overheard.auditing.inputs import Resources
from overheard.learning.models.shift_conv import ShiftConv
from overheard_studies.shift.measured import MeasuredSeries
from overheard_studies.shift.setting import INFORMATION, ShiftScenario, source_of_leakage
from overheard_studies.shift.studies import LAYERS, layers
from studies.tests.shift.planted import judge

WOBBLE = {**dict.fromkeys(range(9), 1.0), 2: 1.1}


@pytest.mark.slow
def test_every_layer_is_measured_and_drawn(
    tiny: ShiftScenario, resources: Resources, tmp_path: Path
) -> None:
    size = replace(tiny.reduced, model=ShiftConv(), seeds=(0,), rounds=8)
    values = layers(replace(tiny, reduced=size)).run(
        tmp_path, quick=True, resources=resources, on_step=None
    )
    # Three kinds by four layers by seven values, and three statements.
    assert len(values) == 3 * 4 * 7 + 3
    # One run has no interval, so no statement is decided.
    assert {one.value for one in values if one.name.startswith("reading_")} == {None}
    page = (tmp_path / "figures.html").read_text(encoding="utf-8")
    assert page.count('role="img"') + page.count('class="keys"') == 1 + 3
    for words in LAYERS.values():
        assert words in page


def test_later_layers_tell_more_only_if_the_last_diverges_more_than_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    measures = [
        source_of_leakage(kind, "cosine", layer) for kind in INFORMATION for layer in LAYERS
    ]

    def holds(last_jumps: bool) -> str:
        followed = tuple(
            MeasuredSeries(
                one,
                6,
                tuple(
                    {**WOBBLE, 6: 1.0 + run + 5 * (one.attack.layer == "8") * last_jumps}
                    for run in (0.1, 0.11)
                ),
                (WOBBLE, WOBBLE),
            )
            for one in measures
        )
        verdicts = judge(monkeypatch, layers(), {"audit": followed})
        return verdicts["later_layers_tell_more"].holds

    assert holds(last_jumps=True) == "yes"
    assert holds(last_jumps=False) != "yes"
