"""Write notes of no practice: a text in each row."""

import json
from pathlib import Path

from causal_lora.data import notes

lines = [json.dumps({"text": text}) for text in notes(6000, 200)]
Path("spare.jsonl").write_text("\n".join(lines) + "\n")
