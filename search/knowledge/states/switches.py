"""Switches: tune values by which a candidate leaves one of its techniques out, `WITH_<TECHNIQUE>`.

A candidate that applies several techniques may declare `tune: {WITH_WARP_SHUFFLES: [1, 0]}`; the
variant with 0 is what shows, without asking a model, how much that technique gains.
"""

import re

PREFIX = "WITH_"
MAX_TECHNIQUE_CHARACTERS = 27
"""A tune name has 32 characters at most (docs/candidates.md)."""


def switch_of(technique: str) -> str:
    """Return the tune name by which a candidate leaves `technique` out."""
    return PREFIX + technique.upper()


def technique_of(name: str) -> str | None:
    """Return which technique the tune value `name` switches; None for any other tune value."""
    technique = name.removeprefix(PREFIX).lower()
    is_switch = name.startswith(PREFIX) and re.fullmatch(r"[a-z][a-z0-9_]+", technique)
    return technique if is_switch else None
