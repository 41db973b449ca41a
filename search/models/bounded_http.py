"""The HTTP client behind Claude: no answer of it can fill the memory or lead elsewhere.

Redirects are not followed, because a prompt goes to the address that the user has named and to no
other. Answers come as they are, not compressed, so that their size is known before they are read.
"""

from collections.abc import Iterator

import anthropic
import httpx2


def open_http(most_bytes: int) -> httpx2.Client:
    """Return a client that reads at most `most_bytes` of any answer."""

    def bound(response: httpx2.Response) -> None:
        encoding = response.headers.get("content-encoding", "identity")
        if encoding != "identity":
            raise httpx2.RemoteProtocolError("the answer is compressed, which was not asked for")
        if isinstance(response.stream, httpx2.SyncByteStream):
            response.stream = _Bounded(response.stream, most_bytes)

    return anthropic.DefaultHttpxClient(
        follow_redirects=False,
        headers={"accept-encoding": "identity"},
        event_hooks={"response": [bound]},
    )


class _Bounded(httpx2.SyncByteStream):
    """The bytes of an answer, up to a limit."""

    def __init__(self, stream: httpx2.SyncByteStream, most_bytes: int) -> None:
        self._stream = stream
        self._left = most_bytes

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._stream:
            self._left -= len(piece)
            if self._left < 0:
                self.close()  # nobody does it for a body that is read at once
                raise httpx2.RemoteProtocolError("the answer is longer than any reply")
            yield piece

    def close(self) -> None:
        self._stream.close()
