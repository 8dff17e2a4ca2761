"""What the doctor says of a recording or a plan."""
