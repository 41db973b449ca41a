"""How the knowledge base speaks: gains as ratios, counts of outcomes, where something is from."""

from math import exp

from kopt.search.knowledge.records import ESTIMATED, Evidence


def ratio(gain: float) -> str:
    """Return a ln ratio as `1.24x`."""
    return f"{exp(gain):.2f}x"


def span(interval: tuple[float, float] | None) -> str:
    """Return an interval of ln ratios as `1.05x to 1.44x`, nothing for none."""
    return "" if interval is None else f"{ratio(interval[0])} to {ratio(interval[1])}"


def arch_words(arch_key: str) -> str:
    """Return `measured on sm_90a` or `estimated for sm_90a`."""
    arch = arch_key.removesuffix(ESTIMATED)
    return f"measured on {arch}" if arch == arch_key else f"estimated for {arch}"


def tries_words(number: float) -> str:
    """Return `1 try`, `2 tries` or `0.5 tries`."""
    return f"{number:g} {'try' if number == 1 else 'tries'}"


def evidence_words(evidence: Evidence) -> str:
    """Return `5 tries: 3 gained, 1 lost, 1 failed; 1.24x where it had an effect`."""
    if not evidence.tries:
        return "no tries"
    outcomes = {
        "gained": evidence.gained,
        "lost": evidence.lost,
        "within noise": evidence.within_noise,
        "failed": evidence.failed,
    }
    counts = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items() if count)
    effect = f"; {ratio(evidence.mean)} where it had an effect" if evidence.weight else ""
    return f"{tries_words(evidence.tries)}: {counts}{effect}"
