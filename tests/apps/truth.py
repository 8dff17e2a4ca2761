"""Write truth.json of a run, as docs/flower.md does: python -m tests.apps.truth FOLDER.

`label_counts` of each app's `task.py` tells how many examples of each class a partition holds,
or the number of its examples if there are no classes.
"""

import importlib
import json
import sys
from pathlib import Path

from overheard.archive.reader import open_transcript
from overheard.core.messages import Update


def write_truth(folder: Path) -> None:
    sys.path.insert(0, str(folder))
    label_counts = importlib.import_module(f"{folder.name}.task").label_counts
    recording = folder / "recording"
    names = json.loads((recording / "node_names.json").read_text())
    counts = [
        {
            "round": message.round,
            "party": message.sender,
            "labels": label_counts(int(float(names[message.sender]))),
        }
        for message in open_transcript(recording).messages
        if isinstance(message.body, Update)
    ]
    (recording / "truth.json").write_text(json.dumps({"counts": counts, "accuracy": []}))


if __name__ == "__main__":
    write_truth(Path(sys.argv[1]).resolve())
