"""The process between kopt and Ray: frames on stdin and stdout, actors on the other side.

    python -m kopt.server.pool.relay \
        '{"address": "ray://head:6379", "starts": true, "prefers": "", "fresh": false}'

It begins with one line of JSON, `{}` or `{"error": ...}`, and ends with its caller. Ray itself
writes to stderr, of which the caller keeps the end.
"""

import json
import os
import sys
import traceback
from typing import BinaryIO, NoReturn

from kopt.config.errors import KoptError
from kopt.config.pool_address import pool_address
from kopt.config.settings import settings_from_environment
from kopt.server.far.service import serve
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
        FrameWriter(target),
        lambda told: PoolDesk(cluster, prefers, told, is_fresh=is_fresh),
        _MOST_LANES,
    )


def _say(target: BinaryIO, facts: dict[str, str]) -> None:
    target.write(json.dumps(facts).encode() + b"\n")
    target.flush()


def enter() -> NoReturn:
    """Serve on the streams of this process, and end it."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what Ray prints must not garble the answers
    code = 1
    try:
        main(sys.stdin.buffer, answers, json.loads(sys.argv[1]))
        code = 0
    except BaseException:  # the outermost frame of this process, which ends before Python tells
        traceback.print_exc()
    finally:
        os._exit(code)  # threads that are still at work have nobody to work for


if __name__ == "__main__":
    enter()
