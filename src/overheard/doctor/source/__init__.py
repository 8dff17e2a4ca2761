"""What the doctor says of the source code of an app, which is read and never run."""
