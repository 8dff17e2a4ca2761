"""Files and folders: the one place that reads small files, and writes and removes anything."""
