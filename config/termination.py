"""SIGTERM taken as Ctrl-C, where there are results so far that would be lost with the process."""

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def terminated_as_by_ctrl_c() -> Generator[None]:
    """Raise KeyboardInterrupt on SIGTERM within this context, as `timeout` and schedulers send it.

    Only the main thread can take signals: elsewhere, and where SIGTERM is taken or ignored already,
    nothing changes.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
