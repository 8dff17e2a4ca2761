"""The agencies' server."""

from flwr.app import ArrayRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from overheard.recorders.flower import RecordingGrid
from regression.task import make_net

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    net = make_net()
    FedAvg(fraction_evaluate=1.0).start(
        grid=RecordingGrid(grid, "recording"),
        initial_arrays=ArrayRecord(net.state_dict()),
        num_rounds=context.run_config["num-server-rounds"],
    )
