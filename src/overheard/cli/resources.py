"""The compute resources that the options of a command ask for."""

from pathlib import Path

from overheard.auditing.inputs import Resources
from overheard.cli.options import Device
from overheard.cli.workers import WorkerOptions


def make_resources(
    data: Path | None, device: Device, workers: WorkerOptions | None
) -> Resources:
    """Return where the data are, and the compute resources; None = the default."""
    options = workers or WorkerOptions()
    return Resources(data, device.value, options.processes, cluster=options.cluster)
