"""Code of the user that a plan names, and code of plugins: found, and its errors explained."""
