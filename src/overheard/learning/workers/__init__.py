"""Worker processes and the jobs that they run."""
