"""The names of the inputs of several draws in one set of arrays, as timing sessions send them."""

from collections.abc import Sequence

from kopt.tools.devices.device import Arrays


def named_draws(draws: Sequence[Arrays]) -> Arrays:
    """Return the inputs of all draws in one: `x` of draw 0, `<k>/x` of draw k > 0."""
    return {draw_name(k, name): array for k, one in enumerate(draws) for name, array in one.items()}


def draw_name(draw: int, tensor: str) -> str:
    """Return what a file calls a tensor of a draw."""
    return f"{draw}/{tensor}" if draw else tensor
