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
    # Three kinds by four layers and the whole model by seven values, and four statements.
    assert len(values) == 3 * 5 * 7 + 4
    # One run has no interval, so no statement is decided.
    assert {one.value for one in values if one.name.startswith("reading_")} == {None}
    page = (tmp_path / "figures.html").read_text(encoding="utf-8")
    assert page.count('role="img"') + page.count('class="keys"') == 1 + 3
    for words in LAYERS.values():
        assert words in page


def test_layers_are_compared_with_one_another_and_with_the_whole_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    layered = [
        source_of_leakage(kind, "cosine", layer) for kind in INFORMATION for layer in LAYERS
    ]
    whole = [source_of_leakage(kind, "cosine") for kind in INFORMATION]

    def holds(key: str, last: float, model: float = 0.0) -> str:
        jumps = {"8": last, None: model}
        followed = tuple(
            MeasuredSeries(
                one,
                6,
                tuple(
                    {**WOBBLE, 6: 1.0 + run + jumps.get(one.attack.layer, 0.0)}
                    for run in (0.1, 0.11)
                ),
                (WOBBLE, WOBBLE),
            )
            for one in (*layered, *whole)
        )
        return judge(monkeypatch, layers(), {"audit": followed})[key].holds

    assert holds("later_layers_tell_more", 5.0) == "yes"
    assert holds("later_layers_tell_more", 0.0) != "yes"
    assert holds("no_layer_is_preferable", 5.0, model=5.0) == "yes"
    assert holds("no_layer_is_preferable", 5.0) == "no"
