"""The process of a resident evaluator: `python -m kopt.server.resident SOCKET IDLE_SECONDS`.

`tools/resident/starting.py` starts it, and waits for `ready` on its stdout.
"""

import os
import signal
import sys
import threading
from pathlib import Path

from kopt.config.errors import KoptError
from kopt.config.pollable_event import PollableEvent
from kopt.config.settings import settings_from_environment
from kopt.server.far import service
from kopt.tools.resident.place import ResidentPlace
from kopt.tools.resident.starting import READY

from .evaluator import ResidentEvaluator
from .local_door import LocalDoor
from .shared_gpu import SharedGpu


def main(socket_path: str, idle_s: str) -> int:
    """Listen at `socket_path` until there is no caller for `idle_s` seconds, or SIGTERM comes."""
    if os.fork():
        os._exit(0)  # whoever started it need not wait for its end, which may be long after its own
    os.setsid()  # neither Ctrl-C nor the end of a terminal is for it
    settings = settings_from_environment()
    place = ResidentPlace(Path(socket_path))
    gpu = SharedGpu(place.device, service.opener(settings, PollableEvent()))
    try:
        evaluator = ResidentEvaluator([LocalDoor(place)], settings, gpu, float(idle_s))
    except KoptError as error:
        print(error, file=sys.stderr)
        return 3

    def end(*_: object) -> None:
        # Not here: the handler may interrupt a thread that holds what `end` needs.
        threading.Thread(target=evaluator.end).start()

    signal.signal(signal.SIGTERM, end)
    with evaluator:
        os.write(sys.stdout.fileno(), READY)
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whoever waits for `ready` has it
        evaluator.serve()
    return 0


if __name__ == "__main__":
    code = main(*sys.argv[1:])
    sys.stderr.flush()
    os._exit(code)  # threads that are still at work have nobody to work for
