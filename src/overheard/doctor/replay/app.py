"""Proves an app in a process of its own, in which alone the app's code runs."""

import ast
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import TypeAdapter

from overheard.core.custom_code.reference import is_code_refused
from overheard.core.errors import PlanError
from overheard.disk.reading import parse_python, parse_toml, read_json_text, read_text
from overheard.doctor.criticism import Diagnosis
from overheard.doctor.replay.child import ERROR_FILE
from overheard.doctor.replay.clients import Code
from overheard.doctor.replay.prove import MOST_RUNS, Proof, ProofRequest
from overheard.doctor.replay.stated_claim import NOTHING_STATED, StatedClaim
from overheard.findings.names import make_printable

MOST_SECONDS = 600
"""Seconds after which a proof is given up."""


def find_code(target: Path, *, model: str = "", data: str = "", client: str = "") -> Code:
    """Return which code of a target is a client; the code is read, and nothing runs.

    Args:
        target: the folder of a Flower app, or a Python file with a `ClientApp` named `app` or a
            function `train(model, data, config)`.
        model: "package.module:name" of what makes the model; "" = a network of the code.
        data: "package.module:name" of the function that loads a client's data; "" = a function
            whose name says so, such as `load_data`.
        client: "package.module:name" of the client; "" = as above.

    Raises:
        PlanError: if the target has no client.

    """
    config: dict[str, object] = {}
    if target.is_dir():
        folder = target
        file = target / "pyproject.toml"
        content = parse_toml(read_text(file, PlanError), str(file), PlanError)
        try:
            app = content["tool"]["flwr"]["app"]
            client = client or str(app["components"]["clientapp"])
            config = _flatten(app.get("config", {}))
        except (KeyError, TypeError, AttributeError) as error:
            raise PlanError(
                f"{file}: names no client of a Flower app ({type(error).__name__}): name the "
                "folder that `flwr run` is called with, or a Python file"
            ) from error
    else:
        folder = target.parent
        text = read_text(target, PlanError)
        tree = parse_python(text)
        client = client or f"{target.stem}:{_name_of_client(tree)}"
    return Code(client, folder.resolve(), model, data, config)


def _name_of_client(tree: ast.Module) -> str:
    """Return the name of a file's client; `train` may answer the messages of a `ClientApp`."""
    names = {getattr(one, "name", "") for one in tree.body}
    has_app = any(
        isinstance(one, ast.Assign)
        and isinstance(one.value, ast.Call)
        and ast.unparse(one.value.func).rpartition(".")[2] == "ClientApp"
        and [ast.unparse(target) for target in one.targets] == ["app"]
        for one in tree.body
    )
    return "train" if "train" in names and not has_app else "app"


def _flatten(config: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    flat = dict[str, object]()
    for name, value in config.items():
        if isinstance(value, dict):
            flat |= _flatten(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def describe_code(code: Code) -> str:
    """Return what code a proof runs, in words that are said before it runs."""
    model = code.model or "a network of its modules"
    data = code.data or "the functions of its modules that load data"
    return (
        f"Runs code of {code.folder}, as you, in a process of its own: the client "
        f"{code.client}, {model}, and {data}; {MOST_RUNS} times at most. Name only code that "
        "you trust"
    )


def prove_app(
    code: Code, stated: StatedClaim = NOTHING_STATED, *, seconds: int = MOST_SECONDS
) -> Diagnosis:
    """Prove the client of an app by record and replay.

    What the code prints is not shown. The diagnosis notes how often it ran, and for how long.

    Args:
        code: the code, see `find_code`.
        stated: clip and noise multiplier, if they are known; what is missing is read from the
            app's configuration, or from its code where it adds noise.
        seconds: after how many seconds to give up.

    Raises:
        PlanError: if code of others is refused, the code cannot be imported, its process dies,
            or it takes too long.

    """
    if is_code_refused():
        raise PlanError(
            f"{code.folder}: --prove runs its code, which --no-code refuses: leave out "
            "--no-code if you trust it"
        )
    with TemporaryDirectory() as folder:
        out = Path(folder) / "proof.json"
        proof = _run(ProofRequest(code, stated), out, seconds)
    found = proof.diagnosis
    note = f"The client ran {proof.runs} times, in {proof.core_seconds:.0f} core seconds."
    return replace(found, notes=(*found.notes, note))


def _run(request: ProofRequest, out: Path, seconds: int) -> Proof:
    # A graphics card would add up in another order each time.
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(one or os.getcwd() for one in sys.path),
        "PYTHONSAFEPATH": "1",
        "CUDA_VISIBLE_DEVICES": "",
        "OMP_NUM_THREADS": "1",
    }
    place = request.code.folder
    try:
        done = subprocess.run(
            [sys.executable, "-m", "overheard.doctor.replay.child", str(out)],
            input=TypeAdapter(ProofRequest).dump_json(request).decode(),
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise PlanError(
            f"{place}: the proof took over {seconds} seconds: give its client less data, or "
            "fewer local epochs"
        ) from error
    if (told := out.parent / ERROR_FILE).is_file():
        raise PlanError(read_text(told, PlanError))
    if not out.is_file():
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise PlanError(
            f"{place}: the client ended its process before the proof was done, with exit code "
            f"{done.returncode} ({make_printable(last[:300])}): leave out calls such as "
            "os._exit, mend the error, or give it more memory"
        )
    return TypeAdapter(Proof).validate_json(read_json_text(out, PlanError))
