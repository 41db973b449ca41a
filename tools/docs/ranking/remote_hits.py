"""Pinecone's list, asked for while this machine makes its own; a failure only leaves it out."""

import threading
from collections.abc import Sequence

from kopt.config.errors import BackendUnavailable
from kopt.config.settings import Settings
from kopt.tools.docs.filters import Filters, running_archs

from .weights import WEIGHTS


class RemoteHits:
    """One question to Pinecone, under way from its making on."""

    def __init__(self, query: str, filters: Filters, sources: Sequence[str]) -> None:
        """Nothing is asked yet."""
        self._query = query
        self._filters = filters
        self._sources = tuple(source for source in sources if filters.admits(source))
        self._thread: threading.Thread | None = None
        self._uids: Sequence[str] = ()
        self.failure: str | None = None
        """Why there is no answer, once `uids` has returned."""
        self.has_answered = False
        """Known once `uids` has returned."""

    def ask(self, settings: Settings) -> None:
        """Begin to ask; nothing happens without a key."""
        if settings.pinecone_api_key is None:
            return
        self._thread = threading.Thread(target=self._ask, args=(settings,), daemon=True)
        self._thread.start()

    def uids(self) -> Sequence[str]:
        """Return the uids of the hits, best first, once they are there: within 3 s."""
        if self._thread is not None:
            self._thread.join()
        return self._uids

    def _ask(self, settings: Settings) -> None:
        # Not at the top: only who has a key loads the service's client.
        from kopt.tools.docs.pinecone_index.backend import pinecone_backend
        from kopt.tools.docs.pinecone_index.remote_filters import RemoteFilters

        backend = pinecone_backend(settings)
        if backend is None:
            return
        filters = RemoteFilters(
            sources=self._sources,
            archs=running_archs(self._filters.arch) if self._filters.arch else (),
            dtype=self._filters.dtype,
            kind=self._filters.kind,
        )
        try:
            self._uids = backend.search(self._query, filters, WEIGHTS.remote_depth)
            self.has_answered = True
        except BackendUnavailable as error:
            self.failure = str(error)
