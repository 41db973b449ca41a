"""The process between kopt and Ray: frames on a socket, actors on the other side.

    python -m kopt.server.pool.relay \
        '{"address": "ray://head:6379", "starts": true, "prefers": "", "fresh": false}'

Its stdin is the socket. It begins with one line of JSON, `{}` or `{"error": ...}`, and ends with
its caller. Ray itself writes to stderr, of which the caller keeps the end.
"""

import json
import os
import socket
import sys
import traceback
from typing import BinaryIO, NoReturn

from kopt.config.errors import KoptError
from kopt.config.pool_address import pool_address
from kopt.config.settings import settings_from_environment
from kopt.server.far.service import serve
from kopt.tools.remote.byte_streams import streams_of
from kopt.tools.remote.wire import FrameReader, FrameWriter

from .cluster import Cluster
from .pool_desk import PoolDesk

_MOST_LANES = 1 << 14
"""The caller is the process that has started this one: several candidates for each of many GPUs."""


def main(source: BinaryIO, target: BinaryIO, options: dict[str, str | bool]) -> None:
    """Join the cluster and answer calls until the caller hangs up.

    Args:
        source: Frames of calls.
        target: Takes a line, then frames of answers.
        options: address; starts: whether a cluster may be started; prefers: UUID of a GPU; fresh:
            whether that is to be this caller's alone, with new worker processes.
    """
    settings = settings_from_environment().without_keys()
    try:
        address = pool_address(str(options["address"]))
        cluster = Cluster(address, settings, starts=bool(options["starts"]))
    except KoptError as error:
        _say(target, {"error": str(error)})
        return
    _say(target, {})
    prefers = str(options["prefers"])
    is_fresh = bool(options["fresh"])
    serve(
        FrameReader(source),
        FrameWriter(target, remembered_bytes=0),  # of this machine, as its caller
        lambda told: PoolDesk(cluster, prefers, told, is_fresh=is_fresh),
        _MOST_LANES,
    )


def _say(target: BinaryIO, facts: dict[str, str]) -> None:
    target.write(json.dumps(facts).encode() + b"\n")
    target.flush()


def enter() -> NoReturn:
    """Serve on the socket of this process, and end it."""
    connection = socket.socket(fileno=os.dup(0))
    # Nothing that Ray starts has the socket, which ends with this process, or prints to it.
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    code = 1
    try:
        main(*streams_of(connection), json.loads(sys.argv[1]))
        code = 0
    except BaseException:  # the outermost frame of this process, which ends before Python tells
        traceback.print_exc()
    finally:
        os._exit(code)  # threads that are still at work have nobody to work for


if __name__ == "__main__":
    enter()
