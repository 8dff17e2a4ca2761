"""The server app: FedAvg of adapters, with a recording of its messages."""

from flwr.app import ArrayRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from peft import get_peft_model_state_dict, set_peft_model_state_dict

from news_app.news import spare_news
from news_app.task import accuracy, get_model
from overheard.recorders.flower import RecordingGrid

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Run the federation."""
    config = context.run_config
    model, spare = get_model(config), spare_news()

    def evaluate(number: int, arrays: ArrayRecord) -> MetricRecord:
        set_peft_model_state_dict(model, arrays.to_torch_state_dict())
        return MetricRecord({"accuracy": accuracy(model, spare)})

    if config["recording"]:
        grid = RecordingGrid(grid, config["recording"])  # the one line
    FedAvg(fraction_evaluate=0.0, min_available_nodes=config["nodes"]).start(
        grid=grid,
        initial_arrays=ArrayRecord(get_peft_model_state_dict(model)),
        num_rounds=config["rounds"],
        evaluate_fn=evaluate,
    )
