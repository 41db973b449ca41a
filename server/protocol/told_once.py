"""What a caller is told once and not again: notices that stay true for a whole session.

A token may be shared by several agents and outlives their sessions: its callers are told each
time.
"""

from collections import OrderedDict

from kopt.config.folder_owner import LOCAL_OWNER

from .caller import Caller

_CALLERS = 256
"""Callers that are remembered; one that is forgotten is told again."""


class ToldOnce:
    """Who was told what by one server."""

    def __init__(self) -> None:
        """Nobody was told anything."""
        self._told: OrderedDict[tuple[str, str], set[str]] = OrderedDict()

    def is_news(self, caller: Caller, notice: str) -> bool:
        """Return whether `caller` was not told `notice` before, and count it as told."""
        if caller.owner != LOCAL_OWNER:
            return True
        key = (caller.owner, caller.name)
        told = self._told.setdefault(key, set())
        self._told.move_to_end(key)
        while len(self._told) > _CALLERS:
            self._told.popitem(last=False)
        if notice in told:
            return False
        told.add(notice)
        return True
