"""A small job for NVFlare's simulator, run as a separate program by `test_nvflare.py`."""

import sys
from pathlib import Path

import numpy as np
from nvflare.apis.dxo import DXO, DataKind, MetaKey, from_shareable
from nvflare.apis.executor import Executor
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable, make_reply
from nvflare.apis.signal import Signal
from nvflare.app_common.abstract.model import ModelLearnable, make_model_learnable
from nvflare.app_common.abstract.model_persistor import ModelPersistor
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.filters.svt_privacy import SVTPrivacy
from nvflare.app_common.workflows.fedavg import FedAvg
from nvflare.job_config.api import FedJob
from nvflare.job_config.defs import FilterType

from overheard.recorders.nvflare import FRAMEWORK, RecordingFilter, RecordingWidget
from overheard.recorders.nvflare_defenses import defenses_of
from overheard.recorders.run_info import RunInfo

SITES = ("site-1", "site-2", "site-3")
ROUNDS = 3
FAILS = 1
"""The round in which site-3 fails."""


class Start(ModelPersistor):
    """A model of three tensors, one of them a counter."""

    def load_model(self, fl_ctx: FLContext) -> ModelLearnable:
        weights = {
            "layer.weight": np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3),
            "layer.bias": np.zeros(4, np.float32),
            "seen": np.array([7]),
        }
        return make_model_learnable(weights, {})

    def save_model(self, model: ModelLearnable, fl_ctx: FLContext) -> None:
        pass


class Learn(Executor):
    """Changes every weight by a hundredth of the site's number."""

    def execute(
        self, task_name: str, shareable: Shareable, fl_ctx: FLContext, abort_signal: Signal
    ) -> Shareable:
        number = int(fl_ctx.get_identity_name().removeprefix("site-"))
        if number == 3 and shareable.get_header(AppConstants.CURRENT_ROUND) == FAILS:
            return make_reply(ReturnCode.EXECUTION_EXCEPTION)
        moved = {
            name: np.full_like(weight, number / 100)
            for name, weight in from_shareable(shareable).data.items()
        }
        meta = {MetaKey.NUM_STEPS_CURRENT_ROUND: 10 * number, "loss": 1 / number}
        return DXO(DataKind.WEIGHT_DIFF, moved, meta).to_shareable()


def main(folder: Path) -> int:
    """Run the job, and write all recordings to `folder`."""
    job = FedJob("tiny", min_clients=len(SITES))
    controller = FedAvg(
        num_clients=len(SITES),
        num_rounds=ROUNDS,
        persistor_id="start",
        ignore_result_error=True,
    )
    job.to_server(controller)
    job.to_server(Start(), id="start")
    svt = SVTPrivacy(fraction=0.5, epsilon=0.1, noise_var=1.0, gamma=0.01)
    facts = RunInfo(FRAMEWORK, "layer", defenses=defenses_of([svt], weights=17))
    job.to_server(
        RecordingWidget(folder / "server", facts, count_unit="examples"), id="recorder"
    )
    # This recorder fails, as a file has the name of its folder.
    job.to_server(RecordingWidget(folder / "file" / "server"), id="failing")
    job.to_server(RecordingWidget("inside"), id="relative")
    job.to_clients(Learn(), tasks=["train"])
    for one in (
        RecordingFilter(folder / "sites", "before"),
        svt,
        RecordingFilter(folder / "sites", "after", facts),
    ):
        job.to_clients(one, filter_type=FilterType.TASK_RESULT, tasks=["train"])
    return job.simulator_run(str(folder / "workspace"), clients=list(SITES)) or 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
