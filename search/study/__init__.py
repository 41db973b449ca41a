"""Settings of the search compared on a set of kernels: plan, runs, statistics, report."""
