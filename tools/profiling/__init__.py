"""Why a candidate takes its time: the estimate's parts, counters of Nsight Compute, what to try."""
