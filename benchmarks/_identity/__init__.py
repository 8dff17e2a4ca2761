"""The parts of the benchmark `identity.py`."""
