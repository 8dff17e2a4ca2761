"""What the files of a Flower app or an NVFlare job state; none of its code is run."""
