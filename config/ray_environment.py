"""What Ray sees of the environment, and what kopt reads of Ray's own variables."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from .settings import Settings, without_secrets


def pool_environment(settings: Settings, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for the process that speaks to Ray, and so for all that Ray starts.

    Nothing that looks like a secret but Ray's own variables, its token among them. Where there is a
    token it is used: `ray start` asks for it then, and what joins says only that it is refused. Ray
    reports nothing to its makers.
    """
    own = {name: value for name, value in environment.items() if name.startswith("RAY_")}
    if _has_token(environment):
        own.setdefault("RAY_AUTH_MODE", "token")
    asked = {"KOPT_HOME": str(settings.home.absolute()), "KOPT_JOBS": str(settings.jobs)}
    return without_secrets(environment) | own | asked | {"RAY_USAGE_STATS_ENABLED": "0"}


def _has_token(environment: Mapping[str, str]) -> bool:
    if {"RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"} & environment.keys():
        return True
    home = environment.get("HOME")
    return bool(home) and Path(home or "", ".ray", "auth_token").is_file()


def known_ray_cluster(environment: Mapping[str, str]) -> str | None:
    """Return HOST:PORT of the cluster that Ray's own tools would join; None where they start one.

    RAY_ADDRESS, else what the last `ray start` on this machine has written, by this user or root:
    anyone may write there, and who answers is believed. Whether it still runs is not asked.
    """
    folder = Path(environment.get("RAY_TMPDIR") or "/tmp") / "ray"
    address = environment.get("RAY_ADDRESS", "").strip()
    if not address:
        try:
            with (folder / "ray_current_cluster").open(encoding="ascii") as written:
                if os.fstat(written.fileno()).st_uid not in (0, os.getuid()):
                    return None
                address = written.read(1024).strip()
        except (OSError, ValueError):
            return None
    return address if re.fullmatch(r"[^/]+:\d+", address) else None
