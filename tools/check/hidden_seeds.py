"""Seeds that a candidate's author cannot know: drawn after the build, from a small secret pool.

A secret of 32 random bytes lies under KOPT_HOME, readable by its owner only. The pool is small so
that oracle results are reused; which of its seeds a candidate meets depends on the secret and on
the built binary, so the draw is repeatable, comes after the build, and cannot be steered. No
result, file name or message names a hidden seed. What this does not stop: an author who may read
the owner's files. The sandbox keeps candidates themselves away from them.
"""

import hashlib
import hmac

from kopt.config.kept_secret import kept_secret
from kopt.config.settings import Settings

POOL_SIZE = 4


def draw_hidden_seeds(
    binary_id: str, count: int, settings: Settings, skipped: int = 0
) -> tuple[int, ...]:
    """Return `count` different seeds of the pool for the binary `binary_id`.

    None of them is among the first `skipped` that the same binary is given.

    Raises:
        SetupError: The secret cannot be kept under KOPT_HOME.
    """
    if skipped + count > POOL_SIZE:
        raise ValueError(f"the pool has {POOL_SIZE} seeds, not {skipped + count}")
    secret = kept_secret(settings.home, "hidden_seeds")
    order = sorted(range(POOL_SIZE), key=lambda member: _digest(secret, f"{binary_id}/{member}"))
    # 63 bits: cannot meet a seed that a user would type, and fits any signed integer field.
    return tuple(
        int.from_bytes(_digest(secret, f"seed/{member}")[:8], "big") >> 1
        for member in order[skipped : skipped + count]
    )


def _digest(secret: bytes, text: str) -> bytes:
    return hmac.new(secret, text.encode(), hashlib.sha256).digest()
