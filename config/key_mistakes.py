"""What is wrong with settings in YAML, in words: unknown keys with the nearest known one."""

from collections.abc import Mapping
from typing import Any, cast

from pydantic_core import ErrorDetails

from kopt.config.near_matches import close_names, did_you_mean


def mistake_in_words(mistake: ErrorDetails, known: Mapping[str, Any]) -> str:
    """Return what is wrong with settings whose keys are those of the tree `known`."""
    key = ".".join(str(part) for part in mistake["loc"])
    match mistake["type"]:
        case "extra_forbidden" | "invalid_key":
            return f"unknown key {key}{_nearest(key, known)}"
        case "model_type":
            inside: Any = known
            for part in mistake["loc"]:
                inside = inside[part]
            return f"{key} is {mistake['input']!r}; it has keys of its own: {', '.join(inside)}"
        case _:
            return f"{key} is {mistake['input']!r}: {mistake['msg']}"


def _nearest(key: str, known: Mapping[str, Any]) -> str:
    """Return what follows an unknown key: the known one that looks most like it."""
    own = key.rpartition(".")[2]
    by_name: dict[str, str] = {}
    for path in _paths(known):
        name = path.rpartition(".")[2]
        if name not in by_name or path == f"{key.removesuffix(own)}{name}":
            by_name[name] = path
    found = close_names(own, by_name, most=1, likeness=0.5)
    return f"; {did_you_mean([by_name[found[0]]])}" if found else "; the keys are in search.yaml"


def _paths(tree: Mapping[str, Any], prefix: str = "") -> list[str]:
    paths: list[str] = []
    for key, value in tree.items():
        paths.append(f"{prefix}{key}")
        if isinstance(value, dict):
            paths += _paths(cast(Mapping[str, Any], value), f"{prefix}{key}.")
    return paths
