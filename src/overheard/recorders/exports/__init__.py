"""What the files of a run hold that other software saved, and how they are read."""
