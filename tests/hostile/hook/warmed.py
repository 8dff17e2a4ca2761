"""Runs commands in forks of a process that has imported Overheard, one after the other.

It reads a request a line from stdin, in JSON. It answers with a line that has the process ID of
the fork. Once it has ended, it answers with its exit code and its seconds of computing.
"""

import atexit
import gc
import importlib
import json
import os
import pkgutil
import resource
import sys
import tempfile
import traceback
from typing import Any

import sitecustomize

OF_FRAMEWORKS = ("flower", "nvflare", "ray", "mlflow", "kernel", "stacked_convolutions")
"""Parts of names of modules that import another framework, which takes seconds, or Triton,
which is not on every machine."""


def import_all() -> None:
    """Import what commands import, so that no fork has to."""
    # At their import, readers of Keras and ONNX ask the system what machine this is.
    import h5py  # noqa: F401
    import onnx  # noqa: F401
    import pandas as pd  # noqa: F401
    import pyarrow.compute  # noqa: F401

    import overheard
    import overheard.cli.main
    from overheard.plans.built_in import built_in_plan
    from overheard.plans.source_code import code_digest, simulation_digest

    for module in pkgutil.walk_packages(overheard.__path__, "overheard."):
        is_of_framework = any(one in module.name for one in OF_FRAMEWORKS)
        if not is_of_framework and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    # What is built once a process and is the same in each.
    overheard.cli.main.command()
    built_in_plan()
    code_digest([name for name in sys.modules if name.startswith("overheard.")], ())
    simulation_digest(())


def serve() -> None:
    """Answer requests until stdin ends."""
    import_all()
    os.fsync = os.fstat  # as in the tests themselves: see conftest.py
    gc.collect()
    gc.freeze()
    _answer("warm")
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            _run(json.loads(line))
        _answer(pid)
        _, status, used = os.wait4(pid, 0)
        _answer(f"{os.waitstatus_to_exitcode(status)} {used.ru_utime + used.ru_stime}")


def _answer(word: object) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


# Any: a request is what `audit_hook.py` wrote.
def _run(request: dict[str, Any]) -> None:
    from overheard.cli.main import main

    code = 70
    try:
        os.setpgid(0, 0)
        os.chdir(request["cwd"])
        for target, name in ((0, os.devnull), (1, request["stdout"]), (2, request["stderr"])):
            descriptor = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
            os.dup2(descriptor, target)
            os.close(descriptor)
        if request["memory_bytes"] is not None:
            resource.setrlimit(resource.RLIMIT_DATA, (request["memory_bytes"],) * 2)
        os.environ.update(request["environment"])
        tempfile.tempdir = None
        sys.argv = ["overheard", *request["arguments"]]
        sitecustomize.begin(request["expected"])
        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        # As `os._exit` runs nothing of what was left for the end.
        atexit._run_exitfuncs()
        os._exit(code)


if __name__ == "__main__":
    serve()
