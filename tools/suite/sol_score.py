"""The SOL score: where a time lies between a baseline's and the floor of the hardware."""


def sol_score(time_us: float, baseline_us: float, floor_us: float) -> float | None:
    """Return 0.5 at the baseline's time and 1 at the floor; None where these two are one.

    Source:
        SOL-ExecBench (NVIDIA): 1 / (1 + (t - t_sol) / (t_base - t_sol)).
    """
    if baseline_us <= floor_us:
        return None
    return 1.0 / (1.0 + max(0.0, time_us - floor_us) / (baseline_us - floor_us))
