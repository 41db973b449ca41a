"""What has changed in a view, as server-sent events: the parts of its page that differ.

Source:
    https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass

import anyio
import anyio.to_thread

from kopt.config.errors import ToolError

from .views import LiveView, Parts

_LOOK_S = 0.5
"""Time between two looks at the files of a run."""
_READ_AGAIN_LOOKS = 10
"""Looks after which a run is read though nothing was written: its process may have died."""
_COMMENT = ": still there\n\n"
"""Ends the connection to a browser that is gone."""
Pause = Callable[[float], Awaitable[object]]


@dataclass
class ChangeFeed:
    """The changes of one view for one browser."""

    view: LiveView
    pause: Pause = anyio.sleep
    """Waits between two looks."""

    async def texts(self) -> AsyncGenerator[str]:
        """Yield events: first the whole page, then what differs from what was sent.

        The browser may have loaded the page before something changed, or have lost the connection.
        """
        sent: Parts = {}
        stamp: object = None
        looks = 0
        while True:
            found = await anyio.to_thread.run_sync(self._stamp)
            if found != stamp or not looks:
                parts = await anyio.to_thread.run_sync(self.view.parts)
                changed = {name: html for name, html in parts.items() if sent.get(name) != html}
                if changed:
                    yield f"event: parts\ndata: {json.dumps(changed)}\n\n"
                else:
                    yield _COMMENT
                sent, stamp = parts, found
            looks = (looks + 1) % _READ_AGAIN_LOOKS
            await self.pause(_LOOK_S)

    def _stamp(self) -> object:
        try:
            return self.view.stamp()
        except ToolError:  # its folder was moved away; the page says so
            return None
