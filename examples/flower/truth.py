"""Writes truth.json beside a recording, from the counts that the app's clients left.

python truth.py RECORDING COUNTS
"""

import json
import sys
from pathlib import Path

from overheard.archive.reader import open_transcript
from overheard.core.messages import Update


def main() -> None:
    """Tell the label counts of each client in each round that it answered."""
    recording, counts = map(Path, sys.argv[1:])
    told = [
        {
            "round": message.round,
            "party": message.sender,
            "labels": json.loads(
                (counts / f"{message.sender.removeprefix('client/')}.json").read_text()
            ),
        }
        for message in open_transcript(recording).messages
        if isinstance(message.body, Update)
    ]
    (recording / "truth.json").write_text(json.dumps({"counts": told, "accuracy": []}))


if __name__ == "__main__":
    main()
