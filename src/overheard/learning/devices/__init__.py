"""Where training runs: on the cores of the CPU, or on a GPU that is faster."""
