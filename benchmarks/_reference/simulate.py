"""Simulate a plan and run its attacks, without a report.

python simulate.py PLAN FOLDER WORKERS
"""

import sys
from pathlib import Path

from overheard.auditing.inputs import Resources
from overheard.auditing.run import audit
from overheard.plans.plan import read_plan

if __name__ == "__main__":
    plan, folder, workers = sys.argv[1:]
    audit(read_plan(Path(plan)), Path(folder), resources=Resources(workers=int(workers)))
