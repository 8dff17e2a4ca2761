"""Writes truth.json beside a recording, from what the app's clients left.

python truth.py RECORDING COUNTS [CANARIES]
"""

import json
import sys
from pathlib import Path

from overheard.archive.reader import open_transcript
from overheard.core.messages import Update


def main() -> None:
    """Tell the label counts of each client in each round that it answered, and its canaries."""
    recording, counts, *canaries = map(Path, sys.argv[1:])
    senders = [
        (message.round, message.sender)
        for message in open_transcript(recording).messages
        if isinstance(message.body, Update)
    ]
    left = {
        sender: json.loads((counts / f"{sender.removeprefix('client/')}.json").read_text())
        for _, sender in senders
    }
    told = [
        {"round": number, "party": sender, "labels": left[sender]["labels"]}
        for number, sender in senders
    ]
    truth = {"counts": told, "accuracy": []}
    for folder in canaries:
        drawn = json.loads((folder / "truth.json").read_text())
        truth["canaries"] = drawn["canaries"]
        # Under the names that clients have in the recording.
        truth["members"] = {
            sender: drawn["members"][f"client/{one['partition']}"]
            for sender, one in left.items()
        }
    (recording / "truth.json").write_text(json.dumps(truth))


if __name__ == "__main__":
    main()
