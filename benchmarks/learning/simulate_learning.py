"""Does the knowledge base learn? Run by hand, for docs/knowledge.md and its plots.

`python benchmarks/learning/simulate_learning.py [memory|transfer|worlds ...]` prints the figures;
`--plots docs/images` writes the plots. `--worlds` and `--kernels` make it smaller.
"""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from learning_plots import Plot, lines_plot
from learning_search import Climb
from learning_studies import (
    Climbs,
    Mean,
    Scale,
    errors_by_gains,
    false_promises,
    lied_share,
    mean_of,
    memory,
    ratio,
    samples_of,
    transfer,
    typical_ratio,
)
from learning_world import Assumptions

from kopt.search.knowledge.policy.calibration import calibrate

Plots = dict[str, str]
"""SVG documents by name."""
BLOCK = 5
"""Kernels whose mean is one point of a plot."""
TRAJECTORY_STEPS = 4
"""The default of `maic_rl.steps`."""
OTHER_WORLDS: Mapping[str, Assumptions] = {
    "as assumed": Assumptions(),
    "20 techniques": Assumptions(techniques=20),
    "90 techniques": Assumptions(techniques=90),
    "6 states": Assumptions(states=6),
    "32 states": Assumptions(states=32),
    "8 % of techniques gain": Assumptions(good=0.08),
    "30 % of techniques gain": Assumptions(good=0.30),
    "no noise": Assumptions(noise=0.0001),
    "noise 5 %": Assumptions(noise=0.05),
    "half of the candidates fail": Assumptions(failure=0.5),
    "kernels differ twice as much": Assumptions(kernel_spread=0.16),
    "states have nothing in common": Assumptions(alike=0.0),
    "gains are half as large": Assumptions(gain=0.09),
}


def main() -> None:
    """Print the figures of the chosen parts."""
    parts: dict[str, Callable[[Scale], Plots]] = {
        "memory": memory_part,
        "transfer": transfer_part,
        "worlds": worlds_part,
    }
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=list(parts), help=", ".join(parts))
    parser.add_argument("--worlds", type=int, default=12)
    parser.add_argument("--kernels", type=int, default=30)
    parser.add_argument("--climb", action="store_true", help="no trajectories")
    parser.add_argument("--plots", type=Path, help="folder for the plots")
    chosen = parser.parse_args()
    steps = None if chosen.climb else TRAJECTORY_STEPS
    for name in chosen.parts:
        plots = parts[name](Scale(chosen.worlds, chosen.kernels, steps=steps))
        for file, document in plots.items() if chosen.plots else ():
            (chosen.plots / f"{file}.svg").write_text(document, "utf-8")


def memory_part(scale: Scale) -> Plots:
    """Memory against none, regret, expectation against truth, intervals, wrong priors."""
    assumed = Assumptions()
    found = memory(scale, assumed)
    late = slice(-10, None)
    for part, name in ((slice(None), "all kernels"), (late, "the last ten")):
        print(f"{name}: candidates to 1.5x; of off to it: in all, typical; goal reached")
        for arm, climbs in found.items():
            cost = mean_of(climbs, part, candidates)
            reached = mean_of(climbs, part, lambda one: float(one.reached))
            words = f"{_words(cost)} | {_ratios(found['off'], climbs, part)} | {reached.value:.3f}"
            print(f"| {arm} | {words} |", flush=True)
    names = {
        "off": "no memory",
        "priors": "priors, not learning",
        "learned": "learning",
        "both": "priors and learning",
        "lies": "wrong priors, learning",
    }
    plots: Plots = {}
    lines = {names[arm]: _blocks(climbs, candidates) for arm, climbs in found.items()}
    plot = Plot("Candidates to 1.5x", "candidates to 1.5x", "kernels searched before")
    plots["learning_candidates"] = lines_plot(plot, lines)
    lines = {names[arm]: _blocks(climbs, regret) for arm, climbs in found.items()}
    plot = Plot("Regret of a draw", "regret of a draw, ln", "kernels searched before")
    plots["learning_regret"] = lines_plot(plot, lines)
    for name, points in lines.items():
        print(f"regret, {name}: {', '.join(_words(mean, 3) for mean in points.values())}")
    errors = errors_by_gains(scale, assumed, found["learned"])
    for least, error in errors.items():
        print(f"|expected - true gain|, {least} or more gains seen: {_words(error, 3)}")
    plot = Plot("Expected against true gain", "|expected - true|, ln", "gains seen, at least", True)
    plots["learning_error"] = lines_plot(plot, {"mean error": errors})
    for arm in ("learned", "both"):
        whole_base = calibrate(samples_of(found[arm]))[0]
        print(
            f"{arm}: {whole_base.with_interval} gains, intervals hold {whole_base.coverage:.3f}, "
            f"mean reward {whole_base.reward:+.3f}, mean discrepancy {whole_base.discrepancy:.3f}"
        )
    lies = false_promises(scale, assumed)
    for begin in range(0, scale.kernels, BLOCK):
        part = slice(begin, begin + BLOCK)
        followed = lied_share(found["lies"], lies, part)
        print(f"false promises followed from kernel {begin}: {_words(followed, 3)}")
    return plots


def transfer_part(scale: Scale) -> Plots:
    """Print what a base of another architecture helps, by how much architectures differ."""
    small = replace(scale, kernels=min(20, scale.kernels))
    first = slice(10)
    plots: Plots = {}
    print("the first ten kernels: of off to transferred, of learned to transferred; typical")
    for change in (0.2, 0.5, 1.0):
        found = transfer(small, Assumptions(arch_change=change), before=30)
        both = (_ratios(found[arm], found["transferred"], first) for arm in ("off", "learned"))
        print(f"| {change:.0%} | {' | '.join(both)} |", flush=True)
        if change == Assumptions().arch_change:
            names = {"off": "no memory", "learned": "learning", "transferred": "base of sm_90a"}
            lines = {names[arm]: _blocks(climbs, candidates) for arm, climbs in found.items()}
            plot = Plot("Transfer", "candidates to 1.5x", "kernels searched on sm_100a before")
            plots["learning_transfer"] = lines_plot(plot, lines)
    return plots


def worlds_part(scale: Scale) -> Plots:
    """Print how the figures depend on what the world is like."""
    small = replace(scale, worlds=max(2, scale.worlds // 2), kernels=min(20, scale.kernels))
    settings = [(name, assumed, 0.5) for name, assumed in OTHER_WORLDS.items()]
    settings += [("priors no better than chance", Assumptions(), 0.15)]
    settings += [("four of five priors gain", Assumptions(), 0.8)]
    print("candidates without memory; of off to learned and to both: in all, typical")
    for name, assumed, right in settings:
        found = memory(small, assumed, right, ("off", "learned", "both"))
        off = mean_of(found["off"], slice(None), candidates)
        words = (_ratios(found["off"], found[arm], slice(None)) for arm in ("learned", "both"))
        print(f"| {name} | {off.value:.0f} | {' | '.join(words)} |", flush=True)
    return {}


def candidates(one: Climb) -> float:
    """Return the candidates of a search."""
    return float(one.candidates)


def regret(one: Climb) -> float:
    """Return the mean regret of its draws."""
    return sum(one.regrets) / len(one.regrets)


def _blocks(climbs: Climbs, of: Callable[[Climb], float]) -> dict[int, Mean]:
    kernels = len(climbs[0])
    return {
        begin: mean_of(climbs, slice(begin, begin + BLOCK), of)
        for begin in range(0, kernels, BLOCK)
    }


def _ratios(over: Climbs, under: Climbs, part: slice) -> str:
    in_all, typical = ratio(over, under, part), typical_ratio(over, under, part)
    return f"{_words(in_all, 2)} | {_words(typical, 2)}"


def _words(mean: Mean, digits: int = 1) -> str:
    return f"{mean.value:.{digits}f} ({mean.low:.{digits}f} to {mean.high:.{digits}f})"


if __name__ == "__main__":
    main()
