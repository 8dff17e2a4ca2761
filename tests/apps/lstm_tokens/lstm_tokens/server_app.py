"""lstm_tokens: what the server does."""

from flwr.app import ArrayRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from lstm_tokens.task import get_model
from overheard.recorders.flower import RecordingGrid

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    model = get_model(context.run_config)
    strategy = FedAvg()
    strategy.start(
        grid=RecordingGrid(grid, "recording"),
        initial_arrays=ArrayRecord(model.state_dict()),
        num_rounds=context.run_config["num-server-rounds"],
    )
