"""The parts of the benchmark `reference.py`."""
