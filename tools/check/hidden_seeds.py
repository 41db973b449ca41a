"""Seeds that nobody can know: drawn from the system's generator after the build, for each use anew.

No seed is kept, and what is made from one is in no cache: whatever somebody learns of the inputs of
one check says nothing of the next. No result, file name or message names a hidden seed.
"""

import secrets

_SEED_BITS = 63  # cannot meet a seed that a user would type, and fits any signed integer field


def draw_hidden_seeds(count: int) -> tuple[int, ...]:
    """Return `count` different seeds that were never drawn before."""
    drawn: set[int] = set()
    while len(drawn) < count:
        drawn.add(secrets.randbits(_SEED_BITS))
    return tuple(drawn)
