"""The server averages everything but batch norm."""

from flwr.app import ArrayRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from fedbn.task import CNN, shared_state
from overheard.recorders.flower import RecordingGrid

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    arrays = ArrayRecord(shared_state(CNN()))
    strategy = FedAvg(fraction_evaluate=1.0)
    num_rounds = context.run_config["num-server-rounds"]
    strategy.start(
        grid=RecordingGrid(grid, "recording"), initial_arrays=arrays, num_rounds=num_rounds
    )
