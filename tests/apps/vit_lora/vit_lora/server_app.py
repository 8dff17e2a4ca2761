"""vit_lora: the server averages adapters."""

from flwr.app import ArrayRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from peft import get_peft_model_state_dict

from overheard.recorders.flower import RecordingGrid
from vit_lora.task import get_model

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Main entry point for the ServerApp."""
    global_model = get_model(context.run_config)
    arrays = ArrayRecord(get_peft_model_state_dict(global_model))
    strategy = FedAvg(fraction_train=1.0, fraction_evaluate=0.4)
    strategy.start(
        grid=RecordingGrid(grid, "recording"),
        initial_arrays=arrays,
        num_rounds=context.run_config["num-server-rounds"],
    )
