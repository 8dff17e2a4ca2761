"""Train on handwritten digits at four sites in NVFlare's simulator, and record the run."""

import shutil
import sys
from pathlib import Path

from digits import write_partition
from net import Net
from nvflare.app_opt.pt.recipes.fedavg import FedAvgRecipe
from nvflare.recipe import SimEnv

from overheard.core.recipe import Recipe
from overheard.recorders.nvflare import FRAMEWORK, RecordingFilter
from overheard.recorders.run_info import RunInfo

SITES = [f"site-{number}" for number in range(1, 5)]
ROUNDS = 5


def main() -> None:
    """Partition the digits, run the job, and write `data` and `recording` to this folder."""
    here = Path.cwd()
    recording = here / "recording"
    if recording.exists():
        sys.exit(f"{recording} exists already: move it away first")
    write_partition(here / "data", SITES, ROUNDS)
    recipe = FedAvgRecipe(
        name="digits",
        model=Net(),
        min_clients=len(SITES),
        num_rounds=ROUNDS,
        train_script=str(Path(__file__).with_name("client.py")),
        train_args=f"--data {here / 'data'}",
        key_metric="",
    )
    # These lines record the run; client.py reports numbers of examples, and not of steps.
    facts = RunInfo(FRAMEWORK, "mlp", recipe=Recipe(rate=0.1, epochs=2, batch=16))
    recorder = RecordingFilter(recording, facts=facts, count_unit="examples")
    recipe.add_server_input_filter(recorder, tasks=["train"])
    recipe.execute(SimEnv(clients=SITES, workspace_root=str(here / "workspace")))
    # The ground truth, which is needed to score attacks; no real run provides it.
    shutil.copy(here / "data" / "truth.json", recording)


if __name__ == "__main__":
    main()
