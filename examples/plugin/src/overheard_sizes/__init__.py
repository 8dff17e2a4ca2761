"""The question whether a client holds more examples than most. Imports no ground truth."""
