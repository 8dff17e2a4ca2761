"""`python -m overheard` is the command `overheard`."""

import os
import sys

# Python puts the working directory first, which may be a folder that the user was given: its
# files would hide installed packages. Own code in it is found all the same.
if not sys.flags.safe_path and sys.path[0] == os.getcwd():
    del sys.path[0]

from overheard.cli.main import main

if __name__ == "__main__":
    main()
