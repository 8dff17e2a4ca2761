"""Ten Flower apps as their authors would write them, none shaped to Overheard.

`python -m tests.apps.simulate NAME FOLDER` copies an app to a folder and runs it there, with
five clients in this process. `python -m tests.apps.truth FOLDER/NAME` then writes what each of
them held.
"""
