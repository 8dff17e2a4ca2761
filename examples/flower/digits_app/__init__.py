"""An ordinary Flower app, except for one line of the server that records the run."""
