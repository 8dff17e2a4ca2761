"""Files from which worker processes map the tensors of tasks."""

import shutil
import tempfile
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import final

from overheard.learning.workers.job import Bundle, WorkerTask
from overheard.learning.workers.worker import StoredTensor
from overheard.learning.workers.worker_process import stored


@final
class TaskFiles:
    """A folder with the tensors of every bundle that some task still reads.

    A bundle is written when the first task with it comes, and its files go when nobody holds
    the bundle any more: of a long row of tasks only those of the moment lie on the disk.
    """

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="overheard-")
        self._written: weakref.WeakKeyDictionary[Bundle, Mapping[str, StoredTensor]] = (
            weakref.WeakKeyDictionary()
        )
        self._count = 0

    def tensors(self, task: WorkerTask) -> Mapping[str, StoredTensor]:
        """All tensors of a task."""
        for bundle in task.bundles:
            if bundle not in self._written:
                self._written[bundle] = self._write(bundle)
        return {n: t for bundle in task.bundles for n, t in self._written[bundle].items()}

    def close(self) -> None:
        """Remove what is left."""
        self._folder.cleanup()

    def _write(self, bundle: Bundle) -> Mapping[str, StoredTensor]:
        folder = Path(self._folder.name) / str(self._count)
        folder.mkdir()
        self._count += 1
        weakref.finalize(bundle, shutil.rmtree, folder, ignore_errors=True)
        return {
            name: stored(tensor, folder / str(place))
            for place, (name, tensor) in enumerate(bundle.tensors.items())
        }
