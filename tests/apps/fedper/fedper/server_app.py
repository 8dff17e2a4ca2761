"""The server averages bodies."""

from flwr.app import ArrayRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from fedper.models import create_model
from overheard.recorders.flower import RecordingGrid

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    model = create_model(context.run_config["num-classes"])
    FedAvg().start(
        grid=RecordingGrid(grid, "recording"),
        initial_arrays=ArrayRecord(model.body.state_dict()),
        num_rounds=context.run_config["num-server-rounds"],
    )
