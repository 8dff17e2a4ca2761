"""The server of the hospitals."""

from flwr.app import ArrayRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from multilabel.task import FindingsNet
from overheard.recorders.flower import RecordingGrid

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    strategy = FedAvg(min_available_nodes=5)
    strategy.start(
        grid=RecordingGrid(grid, "recording"),
        initial_arrays=ArrayRecord(FindingsNet().state_dict()),
        num_rounds=context.run_config["num-server-rounds"],
    )
