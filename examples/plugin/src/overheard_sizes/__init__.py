"""Whether a client holds more examples than most. Imports nothing: attacks load no truth."""
