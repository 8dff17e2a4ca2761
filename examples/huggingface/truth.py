"""Write truth.json for a recording: the label counts of each client's texts.

python truth.py RECORDING
"""

import json
import sys
from pathlib import Path

import numpy as np
from news_app.news import TOPICS, news_of_client

from overheard.archive.reader import open_transcript
from overheard.core.messages import Update


def main() -> None:
    """Draw the texts of each client anew, and count their labels."""
    recording = Path(sys.argv[1])
    partitions = json.loads((recording / "node_names.json").read_text())
    counts_of_client = {
        name: np.bincount(news_of_client(int(number))["label"], minlength=len(TOPICS)).tolist()
        for name, number in partitions.items()
    }
    counts = [
        {
            "round": message.round,
            "party": message.sender,
            "labels": counts_of_client[message.sender],
        }
        for message in open_transcript(recording).messages
        if isinstance(message.body, Update)
    ]
    (recording / "truth.json").write_text(json.dumps({"counts": counts, "accuracy": []}))


if __name__ == "__main__":
    main()
