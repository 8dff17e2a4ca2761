"""The command `cohorts`, and how it shows schedules."""
