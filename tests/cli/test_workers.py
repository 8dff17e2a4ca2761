"""What `--workers` takes: a number, `ray`, or the address of a cluster."""

from importlib.util import find_spec

import pytest
import typer

from overheard.auditing.inputs import Resources
from overheard.cli.workers import STEPS_OF_AUDITS, WorkerOptions, parse_workers
from overheard.findings.audit import Audit
from tests.cli.conftest import Command


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("1", WorkerOptions(1)),
        ("48", WorkerOptions(48)),
        ("ray", WorkerOptions(None, "local")),
        ("ray://head.example:10001", WorkerOptions(None, "ray://head.example:10001")),
    ],
)
def test_accepts_a_number_ray_or_an_address(text: str, meant: WorkerOptions):
    assert parse_workers(text) == meant


@pytest.mark.parametrize(
    "text",
    [
        "0",
        "-1",
        "",
        "2.5",
        "Ray",
        "ray://",
        "ray://host",
        "http://host:80",
        "ray://a:1/x",
        "٣٣٣٣٣٣٣",
    ],
)
def test_refuses_other_values_and_lists_valid_ones(text: str):
    with pytest.raises(typer.BadParameter, match=r"ray://host:10001"):
        parse_workers(text)


def test_passes_cluster_and_processes_on(overheard: Command, monkeypatch: pytest.MonkeyPatch):
    given = list[Resources]()

    def audit(*_: object, resources: Resources, **__: object) -> Audit:
        given.append(resources)
        raise KeyboardInterrupt

    monkeypatch.setattr("overheard.cli.audit_and_report.audit", audit)
    overheard("audit", "--device", "cpu", "--workers", "ray")
    overheard("audit", "--device", "cpu", "--workers", "2")
    assert [(one.workers, one.cluster) for one in given] == [(None, "local"), (2, None)]


def test_the_module_that_workers_import_beforehand_exists() -> None:
    assert find_spec(STEPS_OF_AUDITS) is not None
