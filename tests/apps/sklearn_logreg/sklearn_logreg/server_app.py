"""sklearn-logreg: a Flower / scikit-learn app."""

from flwr.app import ArrayRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from overheard.recorders.flower import RecordingGrid
from sklearn_logreg.task import create_log_reg_and_instantiate_parameters, get_model_parameters

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Main entry point for the ServerApp."""
    num_rounds: int = context.run_config["num-server-rounds"]
    model = create_log_reg_and_instantiate_parameters(
        context.run_config["penalty"], context.run_config["local-epochs"]
    )
    arrays = ArrayRecord(get_model_parameters(model))
    strategy = FedAvg(fraction_train=1.0, fraction_evaluate=1.0)
    strategy.start(
        grid=RecordingGrid(grid, "recording"), initial_arrays=arrays, num_rounds=num_rounds
    )
