"""The arms of a study: the whole search, the ablations of the paper, settings of one's own.

Source:
    KernelBlaster, memory-augmented in-context reinforcement learning for CUDA, its ablations:
    without memory, with cycles in place of a profile, and a minimal agent. docs/study.md says what
    each leaves out here.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kopt.config.errors import ToolError
from kopt.config.search_settings import SearchSettings, load_search_settings

from .plan import Arm

ABLATIONS: Mapping[str, Mapping[str, Any]] = {
    "full": {},
    "memory_off": {"memory": "off"},
    "cycles_only": {"profile": "cycles_only"},
    "minimal": {"agent": "minimal", "memory": "off"},
}
"""What each changes of the settings that all arms have in common."""


def make_arms(words: Sequence[str], common: SearchSettings) -> tuple[Arm, ...]:
    """Return the arms that `words` name, each `full` or another ablation, or `NAME=FILE.yaml`.

    Raises:
        ToolError: A name is unknown or there twice, or a file is none of search settings.
    """
    arms = tuple(_arm(word, common) for word in words)
    names = [arm.name for arm in arms]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ToolError(f"the arm {twice} is named twice")
    return arms


def _arm(word: str, common: SearchSettings) -> Arm:
    name, equals, file = word.partition("=")
    if equals:
        search = load_search_settings(Path(file), common)
    elif name in ABLATIONS:
        search = common.model_copy(update=ABLATIONS[name])
    else:
        raise ToolError(f"arm {name!r} is unknown: {', '.join(ABLATIONS)}, or NAME=FILE.yaml")
    try:
        return Arm(name=name, search=search)
    except ValidationError as error:
        raise ToolError(f"arm {name!r}: up to 20 of a-z, 0-9 and _, a letter first") from error
