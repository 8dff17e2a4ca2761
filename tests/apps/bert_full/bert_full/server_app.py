"""bert_full: A Flower / Hugging Face app."""

from flwr.app import ArrayRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from bert_full.task import get_model
from overheard.recorders.flower import RecordingGrid

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    num_rounds = context.run_config["num-server-rounds"]
    net = get_model()
    arrays = ArrayRecord(net.state_dict())
    strategy = FedAvg(fraction_evaluate=0.5)
    strategy.start(
        grid=RecordingGrid(grid, "recording"), initial_arrays=arrays, num_rounds=num_rounds
    )
