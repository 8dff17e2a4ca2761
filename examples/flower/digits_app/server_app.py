"""The server app: FedAvg, with a recording of its messages."""

import torch
from flwr.app import ArrayRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from digits_app.noise import make_noise_mod
from digits_app.task import CLIENT_IMAGES, accuracy, build, digits
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
        noise = make_noise_mod(config)
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
        grid.finish(
            learned.arrays
        )  # clients that do not evaluate never receive the final model


def evaluate(number: int, arrays: ArrayRecord) -> MetricRecord:
    """Evaluate the global model on the images that no client holds."""
    model = build()
    model.load_state_dict(arrays.to_torch_state_dict())
    inputs, labels = digits()
    return MetricRecord(
        {"accuracy": accuracy(model, inputs[CLIENT_IMAGES:], labels[CLIENT_IMAGES:])}
    )
