"""Write truth.json for a recording, from the label counts that the app's clients wrote.

python truth.py RECORDING COUNTS [CANARIES]
"""

import json
import sys
from pathlib import Path

from overheard.archive.reader import open_transcript
from overheard.core.messages import Update


def main() -> None:
    """Write each client's label counts in each round with an update, and its canaries."""
    recording, counts, *canaries = map(Path, sys.argv[1:])
    senders = [
        (message.round, message.sender)
        for message in open_transcript(recording).messages
        if isinstance(message.body, Update)
    ]
    counts_of_sender = {
        sender: json.loads((counts / f"{sender.removeprefix('client/')}.json").read_text())
        for _, sender in senders
    }
    rounds_of_sender = [
        {"round": number, "party": sender, "labels": counts_of_sender[sender]["labels"]}
        for number, sender in senders
    ]
    truth = {"counts": rounds_of_sender, "accuracy": []}
    for folder in canaries:
        canary_truth = json.loads((folder / "truth.json").read_text())
        truth |= {key: canary_truth[key] for key in ("canaries", "bound")}
        # With the clients' names in the recording.
        for key in ("members", "offered"):
            truth[key] = {
                sender: canary_truth[key][f"client/{one['partition']}"]
                for sender, one in counts_of_sender.items()
            }
    (recording / "truth.json").write_text(json.dumps(truth))


if __name__ == "__main__":
    main()
