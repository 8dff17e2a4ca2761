"""causal_lora: the server averages adapters and never sees a note."""

from flwr.app import ArrayRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from peft import get_peft_model_state_dict

from causal_lora.task import get_model
from overheard.recorders.flower import RecordingGrid

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    init_model = get_model(context.run_config)
    strategy = FedAvg(fraction_evaluate=0.0)
    strategy.start(
        grid=RecordingGrid(grid, "recording"),
        initial_arrays=ArrayRecord(get_peft_model_state_dict(init_model)),
        num_rounds=context.run_config["num-server-rounds"],
    )
