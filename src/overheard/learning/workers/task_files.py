"""Files from which worker processes memory-map the tensors of tasks."""

import tempfile
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import final

from overheard.disk.folders import make_folder, remove_folder
from overheard.learning.workers.job import TensorBundle, WorkerTask
from overheard.learning.workers.worker import StoredTensor
from overheard.learning.workers.worker_process import store_tensor


@final
class TaskFiles:
    """A folder with the tensors of every bundle that some task still reads.

    A bundle is written with its first task. Its files are removed once the bundle is garbage
    collected, so the disk holds only the tensors of current tasks.
    """

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="overheard-")
        self._written: weakref.WeakKeyDictionary[TensorBundle, Mapping[str, StoredTensor]] = (
            weakref.WeakKeyDictionary()
        )
        self._count = 0

    def tensors(self, task: WorkerTask) -> Mapping[str, StoredTensor]:
        """Return all tensors of a task; write those not yet on the disk."""
        for bundle in task.bundles:
            if bundle not in self._written:
                self._written[bundle] = self._write(bundle)
        return {n: t for bundle in task.bundles for n, t in self._written[bundle].items()}

    def close(self) -> None:
        """Remove the folder."""
        self._folder.cleanup()

    def _write(self, bundle: TensorBundle) -> Mapping[str, StoredTensor]:
        folder = Path(self._folder.name) / str(self._count)
        make_folder(folder, inside=folder.parent)
        self._count += 1
        weakref.finalize(bundle, remove_folder, folder, inside=folder.parent)
        return {
            name: store_tensor(tensor, folder / str(place))
            for place, (name, tensor) in enumerate(bundle.tensors.items())
        }
