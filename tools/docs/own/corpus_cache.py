"""The corpus as it is now, read again only when a file of it changed."""

import threading
import time
from typing import NamedTuple

from kopt.config.settings import Settings

from .corpus import Corpus, FileState, corpus_state, read_corpus

_SETTLES_IN_NS = 100_000_000
"""Clocks of file systems are coarse: a file that changed just now may change again unseen."""


class _Read(NamedTuple):
    settings: Settings
    state: tuple[FileState, ...]
    corpus: Corpus
    is_settled: bool


_last: list[_Read] = []
_guard = threading.Lock()
"""Of `_last`, and so that threads that start at once read once."""


def current_corpus(settings: Settings) -> Corpus:
    """Return the corpus, kept from the last call of this process if no file changed since."""
    state = corpus_state(settings)
    with _guard:
        if _last:
            last = _last[0]
            if last.is_settled and (last.settings, last.state) == (settings, state):
                return last.corpus
        corpus = read_corpus(settings)
        _last[:] = [_Read(settings, state, corpus, _is_settled(state))]
    return corpus


def _is_settled(state: tuple[FileState, ...]) -> bool:
    newest = max((file.changed_ns for file in state), default=0)
    return time.time_ns() - newest > _SETTLES_IN_NS
