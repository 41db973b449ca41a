"""Compile caches that all processes of one test run share: what one has built, the others find.

They hold nothing of any test: entries are found by their content and put in place by one rename.
"""

import shutil
from pathlib import Path

from kopt.config.settings import Settings
from kopt.tools.sim.toolset import find_toolset

_SHARED = ("cubin", "oracle", "sandbox", "sim")


def share_caches(home: Path, caches: Path, names: tuple[str, ...] = _SHARED) -> Path:
    """Return `home`, made into a state folder whose compile caches `names` are in `caches`."""
    own = home / "cache"
    own.mkdir(parents=True)
    for name in names:
        (caches / name).mkdir(parents=True, exist_ok=True)
        (own / name).symlink_to(caches / name)
    return home


def share_far_code(home: Path, caches: Path) -> Path:
    """Return `home` of another machine, where kopt's code lies that any test has sent.

    An archive of the code is made, sent and unpacked, and Python compiles it, in two seconds.
    """
    (caches / "far-code").mkdir(parents=True, exist_ok=True)
    (home / "remote").mkdir(parents=True)
    (home / "remote" / "code").symlink_to(caches / "far-code")
    return home


def copy_toolset(caches: Path, home: Path) -> Path:
    """Return `home`, whose caches are its own and have the simulator's parts from the start.

    They take more than ten seconds to compile, and most tests of caches are not about them.
    """
    built = find_toolset(Settings(home=share_caches(home.with_name("builder"), caches))).folder
    shutil.copytree(built, Settings(home=home).sim_cache / built.name)
    return home
