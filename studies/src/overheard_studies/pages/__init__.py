"""Pages of studies: one of a study, and one of all."""
