"""Trains on handwritten digits at four sites, in NVFlare's simulator, and records the run."""

import shutil
import sys
from pathlib import Path

from digits import deal
from net import Net
from nvflare.app_opt.pt.recipes.fedavg import FedAvgRecipe
from nvflare.recipe import SimEnv

from overheard.core.recipe import Recipe
from overheard.recorders.facts import Facts
from overheard.recorders.nvflare import FRAMEWORK, RecordingFilter

SITES = [f"site-{number}" for number in range(1, 5)]
ROUNDS = 5


def main() -> None:
    """Deal the digits, run the job, and leave `data` and `recording` in this folder."""
    here = Path.cwd()
    recording = here / "recording"
    if recording.exists():
        sys.exit(f"{recording} is there already: move it away first")
    deal(here / "data", SITES, ROUNDS)
    recipe = FedAvgRecipe(
        name="digits",
        model=Net(),
        min_clients=len(SITES),
        num_rounds=ROUNDS,
        train_script=str(Path(__file__).with_name("client.py")),
        train_args=f"--data {here / 'data'}",
        key_metric="",
    )
    # These two lines are all that recording takes.
    facts = Facts(FRAMEWORK, "mlp", recipe=Recipe(rate=0.1, epochs=2, batch=16))
    recipe.add_server_input_filter(RecordingFilter(recording, facts=facts), tasks=["train"])
    recipe.execute(SimEnv(clients=SITES, workspace_root=str(here / "workspace")))
    # Who held what. Only where that is known can an attack be scored; no run tells it.
    shutil.copy(here / "data" / "truth.json", recording)


if __name__ == "__main__":
    main()
