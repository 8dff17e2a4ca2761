"""What the server does: average, and record what it hears."""

import torch
from flwr.app import ArrayRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from digits_app.noise import noise_of
from digits_app.task import HELD, accuracy, build, digits
from overheard.recorders.flower import RecordingGrid

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Run the federation."""
    config = context.run_config
    torch.manual_seed(0)
    strategy = FedAvg(
        fraction_evaluate=config["fraction-evaluate"], min_available_nodes=config["nodes"]
    )
    if config["recording"]:
        noise = noise_of(config)
        stated = [] if noise is None else [noise]
        grid = RecordingGrid(grid, config["recording"], defenses=stated)  # the one line
    learned = strategy.start(
        grid=grid,
        initial_arrays=ArrayRecord(build().state_dict()),
        num_rounds=config["rounds"],
        timeout=config["timeout"],
        evaluate_fn=evaluate,
    )
    if isinstance(grid, RecordingGrid):
        grid.finish(learned.arrays)  # where clients evaluate nothing, they are not sent it


def evaluate(number: int, arrays: ArrayRecord) -> MetricRecord:
    """How the global model does on the images that are nobody's."""
    model = build()
    model.load_state_dict(arrays.to_torch_state_dict())
    inputs, labels = digits()
    return MetricRecord({"accuracy": accuracy(model, inputs[HELD:], labels[HELD:])})
