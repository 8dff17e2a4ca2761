"""The process in which the code of a proven client runs."""

import sys
from pathlib import Path

import torch
from pydantic import TypeAdapter

from overheard.core.errors import AuditError
from overheard.disk.writing import write_text
from overheard.doctor.replay.prove import Proof, ProofRequest, prove_here

ERROR_FILE = "error.txt"
"""The file beside the proof with the message of an error that the user can correct."""


def main(request_text: str, out: Path) -> None:
    """Run a proof, and write what it found."""
    request = TypeAdapter(ProofRequest).validate_json(request_text)
    torch.set_num_threads(1)
    # After all other places, so that no module of the app hides another one.
    sys.path.append(str(request.code.folder))
    try:
        proof = prove_here(request.code, request.stated)
    except AuditError as error:
        write_text(out.parent / ERROR_FILE, str(error), inside=out.parent)
        return
    write_text(out, TypeAdapter(Proof).dump_json(proof).decode(), inside=out.parent)


if __name__ == "__main__":
    main(sys.stdin.read(), Path(sys.argv[1]))
