"""As NVFlare's hello-dp: one engine over all rounds, and its epsilon in each reply.

A job for NVFlare's simulator, run as a separate program by `test_nvflare_case.py`.
"""

import sys
from pathlib import Path

import torch
from nvflare.apis.dxo import DXO, DataKind, MetaKey, from_shareable
from nvflare.apis.executor import Executor
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable
from nvflare.apis.signal import Signal
from nvflare.app_common.abstract.model import ModelLearnable, make_model_learnable
from nvflare.app_common.abstract.model_persistor import ModelPersistor
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.workflows.fedavg import FedAvg
from nvflare.job_config.api import FedJob
from opacus import PrivacyEngine

from overheard.archive.manifest import DefenseRecord
from overheard.core.mechanism import Mechanism
from overheard.recorders.nvflare import FRAMEWORK, RecordingWidget
from overheard.recorders.run_info import RunInfo
from tests.doctor.public_cases.cases_data import Net, load_data, measure

SITES, ROUNDS, DELTA = ("site-1", "site-2"), 2, 1e-5


class Start(ModelPersistor):
    def load_model(self, fl_ctx: FLContext) -> ModelLearnable:
        weights = {name: one.numpy() for name, one in Net().state_dict().items()}
        return make_model_learnable(weights, {})

    def save_model(self, model: ModelLearnable, fl_ctx: FLContext) -> None:
        pass


class Learn(Executor):
    """Trains by DP-SGD, with an engine that is made in the first round and kept."""

    def execute(
        self, task_name: str, shareable: Shareable, fl_ctx: FLContext, abort_signal: Signal
    ) -> Shareable:
        partition = int(fl_ctx.get_identity_name().removeprefix("site-"))
        if shareable.get_header(AppConstants.CURRENT_ROUND) == 0:
            self.train_loader, self.test_loader = load_data(partition)
            self.net = Net()
            optimizer = torch.optim.SGD(self.net.parameters(), lr=0.05)
            self.engine = PrivacyEngine()
            self.model, self.optimizer, self.train_loader = self.engine.make_private(
                module=self.net,
                optimizer=optimizer,
                data_loader=self.train_loader,
                noise_multiplier=1.0,
                max_grad_norm=1.0,
            )
        received = from_shareable(shareable).data
        state = {name: torch.as_tensor(one) for name, one in received.items()}
        self.net.load_state_dict(state)
        _, global_accuracy = measure(self.net, self.test_loader)
        self.model.train()
        for data, target in self.train_loader:
            self.optimizer.zero_grad()
            torch.nn.functional.cross_entropy(self.model(data), target).backward()
            self.optimizer.step()
        metrics = {
            "accuracy": global_accuracy,
            "privacy_epsilon": float(self.engine.get_epsilon(DELTA)),
        }
        trained = self.net.state_dict()
        moved = {name: one.numpy() - received[name] for name, one in trained.items()}
        meta = {
            MetaKey.NUM_STEPS_CURRENT_ROUND: len(self.train_loader),
            MetaKey.INITIAL_METRICS: metrics,
        }
        return DXO(DataKind.WEIGHT_DIFF, moved, meta).to_shareable()


def main(folder: Path) -> int:
    """Run the job, and record it to `folder`."""
    job = FedJob("hello-dp", min_clients=len(SITES))
    job.to_server(FedAvg(num_clients=len(SITES), num_rounds=ROUNDS, persistor_id="start"))
    job.to_server(Start(), id="start")
    mechanism = Mechanism(
        1.0, 1.0, DELTA, "client", "client", moves=1.0, unit="record", steps=5,
        record_sampling="poisson", record_rate=0.2,
    )  # fmt: skip
    stated = DefenseRecord("Opacus DP-SGD", "Opacus DP-SGD", "client", "each client", mechanism)
    facts = RunInfo(FRAMEWORK, "second", defenses=(stated,))
    job.to_server(RecordingWidget(folder / "server", facts), id="recorder")
    job.to_clients(Learn(), tasks=["train"])
    return job.simulator_run(str(folder / "workspace"), clients=list(SITES)) or 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
