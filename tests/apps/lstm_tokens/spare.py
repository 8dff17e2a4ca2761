"""Write posts of no forum, as a table of texts."""

import csv
from pathlib import Path

from lstm_tokens.task import posts

with Path("spare.csv").open("w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(["text", "board"])
    writer.writerows(posts(808, 300))
