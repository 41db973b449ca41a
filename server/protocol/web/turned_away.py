"""The reply to a connection that is not kept, whatever was asked."""

import asyncio
from http import HTTPStatus

from starlette.responses import Response


def turn_away(transport: asyncio.Transport, reply: Response) -> None:
    """Write `reply` and end the connection."""
    transport.write(_written(reply))
    transport.close()


def _written(reply: Response) -> bytes:
    status = HTTPStatus(reply.status_code)
    head = f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode()
    lines = b"".join(name + b": " + value + b"\r\n" for name, value in reply.raw_headers)
    return head + lines + b"\r\n" + bytes(reply.body)
