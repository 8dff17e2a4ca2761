"""`python -m overheard` is the command `overheard`."""

from overheard.cli.main import main

if __name__ == "__main__":
    main()
