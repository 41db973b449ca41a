"""Pinecone's list of hits, asked for while this machine makes its own; a failure leaves it out."""

import threading
from collections.abc import Sequence
from dataclasses import replace

from kopt.config.errors import BackendUnavailable
from kopt.config.settings import Settings
from kopt.tools.docs.indexing.filters import Filters
from kopt.tools.docs.pinecone_index.asking import pinecone_backend
from kopt.tools.docs.weights import WEIGHTS


class RemoteHits:
    """One question to Pinecone, which a thread of its own asks."""

    def __init__(self, query: str, filters: Filters, sources: Sequence[str]) -> None:
        """Prepare the question; `sources` are those of the library index."""
        self._query = query
        admitted = tuple(source for source in sources if filters.admits(source))
        self._filters = replace(filters, sources=admitted)
        self._thread: threading.Thread | None = None
        self._uids: Sequence[str] | None = None
        self.failure: str | None = None
        """Why there is no answer, once `uids` has returned."""

    @property
    def has_answered(self) -> bool:
        """Whether there is an answer, once `uids` has returned."""
        return self._uids is not None

    def ask(self, settings: Settings) -> None:
        """Start asking; without a key nothing happens."""
        if settings.pinecone_api_key is not None:
            self._thread = threading.Thread(target=self._ask, args=(settings,), daemon=True)
            self._thread.start()

    def uids(self) -> Sequence[str]:
        """Return the uids of the hits, best first, once they are there: within DEADLINE_S."""
        if self._thread is not None:
            self._thread.join()
        return self._uids or ()

    def _ask(self, settings: Settings) -> None:
        backend = pinecone_backend(settings)
        try:
            if backend is not None:
                self._uids = backend.search(self._query, self._filters, WEIGHTS.remote_depth)
        except BackendUnavailable as error:
            self.failure = str(error)
