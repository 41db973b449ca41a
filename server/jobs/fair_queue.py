"""What waits for one device: callers take turns, and what one caller asks for stays in order."""

from collections import OrderedDict, deque
from typing import Generic, TypeVar

Item = TypeVar("Item")


class FairQueue(Generic[Item]):
    """Round robin over callers, first in, first out within each; for one thread."""

    def __init__(self) -> None:
        """Begin empty."""
        self._turns: OrderedDict[str, deque[Item]] = OrderedDict()

    def __len__(self) -> int:
        """Return how many items wait."""
        return sum(len(items) for items in self._turns.values())

    def put(self, caller: str, item: Item) -> None:
        """Let `item` wait behind what `caller` asked for before."""
        self._turns.setdefault(caller, deque()).append(item)

    def take(self) -> Item | None:
        """Return the next item, None if there is none; its caller goes to the end of the line."""
        if not self._turns:
            return None
        caller, items = self._turns.popitem(last=False)
        item = items.popleft()
        if items:
            self._turns[caller] = items
        return item

    def before(self, caller: str, item: Item) -> int | None:
        """Return how many items will be taken before `item`; None if it does not wait."""
        own = self._turns.get(caller)
        if own is None or item not in own:
            return None
        round_number = own.index(item)
        callers = list(self._turns)
        ahead = callers[: callers.index(caller)]
        return round_number + sum(
            min(len(items), round_number + (other in ahead))
            for other, items in self._turns.items()
            if other != caller
        )

    def remove(self, caller: str, item: Item) -> bool:
        """Take `item` out of the line; False if it does not wait."""
        items = self._turns.get(caller)
        if items is None or item not in items:
            return False
        items.remove(item)
        if not items:
            del self._turns[caller]
        return True
