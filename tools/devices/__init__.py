"""The interface between the stages and what executes or times kernels: the simulator, or a GPU."""
