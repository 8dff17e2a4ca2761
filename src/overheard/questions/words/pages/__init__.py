"""Report sentences, tables and figures of this question."""
