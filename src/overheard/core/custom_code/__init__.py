"""Custom code that a plan names, and code of plugins: imported, with its errors explained."""
