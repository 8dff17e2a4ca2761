"""The first plan that `overheard init` writes: it runs, and explains each choice."""
