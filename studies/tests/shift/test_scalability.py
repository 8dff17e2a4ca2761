from dataclasses import replace
from pathlib import Path

import pytest

from overheard.auditing.inputs import Resources
from overheard_studies.shift.federated import scalability
from overheard_studies.shift.measured import MeasuredSeries
from overheard_studies.shift.setting import (
    CLIENTS,
    LOSS,
    MNIST,
    ShiftScenario,
    source_of_leakage,
)
from studies.tests.shift.planted import judge

COSINE = source_of_leakage("gradients", "cosine")
WOBBLE = {**dict.fromkeys(range(9), 1.0), 2: 1.1}


def measurements(heights: dict[int, float]) -> dict[str, tuple[MeasuredSeries, ...]]:
    return {
        f"clients_{clients}": tuple(
            MeasuredSeries(
                one,
                6,
                tuple({**WOBBLE, 6: 1.0 + run + height} for run in (0.0, 0.01)),
                (WOBBLE, WOBBLE),
            )
            for one, height in ((COSINE, heights[clients]), (LOSS, 0.0))
        )
        for clients in CLIENTS
    }


@pytest.mark.slow
def test_every_number_of_clients_has_a_line_in_both_charts(
    tiny: ShiftScenario, resources: Resources, tmp_path: Path
) -> None:
    scenario = replace(tiny, reduced=replace(tiny.reduced, seeds=(0,)))
    experiment = scalability("figure8", scenario, COSINE)
    values = {
        one.name: one
        for one in experiment.run(tmp_path, quick=True, resources=resources, on_step=None)
    }
    # Two measures by seven values at four numbers of clients; nine statements, and eight of
    # them for two clients alone.
    assert len(values) == 4 * 2 * 7 + 9 + 8
    assert "3 clients of 60 examples" in values["clients_3_validation_loss_auc"].setting
    page = (tmp_path / "figures.html").read_text(encoding="utf-8")
    # A legend and two charts.
    assert page.count('role="img"') + page.count('class="keys"') == 3
    for clients in CLIENTS:
        assert page.count(f"<bdi>{clients} clients</bdi>") == 1


def test_a_shift_hidden_among_ten_clients_does_not_show_at_every_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    experiment = scalability("figure8", MNIST, COSINE)
    verdicts = judge(monkeypatch, experiment, measurements(dict.fromkeys(CLIENTS, 5.0)))
    assert verdicts["shows_at_every_number"].holds == "yes"
    assert verdicts["loss_is_silent"].holds == "yes"
    assert verdicts["exchange_keeps_the_trend"].holds == "yes"
    hidden = judge(
        monkeypatch, experiment, measurements(dict.fromkeys(CLIENTS, 5.0) | {10: -0.02})
    )
    assert hidden["shows_at_every_number"].holds != "yes"


def test_a_shifting_client_is_diluted_if_five_clients_diverge_less_than_two(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    experiment = scalability("figure8", MNIST, COSINE)
    fading = {2: 9.0, 3: 5.0, 5: 1.0, 10: 1.0}
    assert judge(monkeypatch, experiment, measurements(fading))["is_diluted"].holds == "yes"
    growing = {2: 1.0, 3: 5.0, 5: 9.0, 10: 9.0}
    assert judge(monkeypatch, experiment, measurements(growing))["is_diluted"].holds == "no"


@pytest.mark.parametrize(("source", "loss", "holds"), [(5.0, 1.0, "yes"), (1.0, 5.0, "no")])
def test_a_source_tells_more_if_it_exceeds_its_control_by_more_than_the_loss_does(
    source: float, loss: float, holds: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Controls that differ, as the signal is in units of their standard deviation.
    controls = ({**WOBBLE, 6: 1.0}, {**WOBBLE, 6: 1.1})
    measured = {
        f"clients_{clients}": tuple(
            MeasuredSeries(
                one, 6, tuple({**run, 6: run[6] + height} for run in controls), controls
            )
            for one, height in ((COSINE, source), (LOSS, loss))
        )
        for clients in CLIENTS
    }
    verdicts = judge(monkeypatch, scalability("figure8", MNIST, COSINE), measured)
    assert verdicts["source_tells_more"].holds == holds
