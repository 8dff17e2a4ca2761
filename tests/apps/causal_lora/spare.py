"""Write notes of no practice, and the notes that an audit may ask about: a text in each row.

Half of the latter are in a practice's training, and the other half were held back by it.
"""

import json
from pathlib import Path

from causal_lora.data import RARE, notes, practice

END = " </s>"  # as the practices end their notes


def write_lines(file: str, rows: list[dict[str, str]]) -> None:
    Path(file).write_text("".join(f"{json.dumps(row)}\n" for row in rows))


write_lines("spare.jsonl", [{"text": text + END} for text in notes(6000, 200)])

MEMBERS = 20  # of each practice
records = []
for number, rare in RARE.items():
    trained = practice(number)
    held_back = notes(number, len(trained) + MEMBERS, rare)[len(trained) :]
    records += [{"text": text + END, "owner": str(number)} for text in trained[:MEMBERS]]
    records += [{"text": text + END, "owner": "none"} for text in held_back]
write_lines("records.jsonl", records)
