"""How many files a server may have open: a queued job and a connection are one each."""

import resource
from contextlib import suppress

WANTED = 8192
"""Far more than all limits of the server together; shells allow 1024 at first, and many more to who
asks."""


def raise_open_files() -> None:
    """Allow this process and its children `WANTED` open files, or as many as the system lets it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED if hard == resource.RLIM_INFINITY else min(WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):  # it serves all the same
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
