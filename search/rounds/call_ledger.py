"""The ledger of model calls for threads that must not touch the store: all through the mailbox."""

from dataclasses import dataclass

from kopt.search.models.call_errors import CallFailed
from kopt.search.models.ledger import CallDocuments, Ledger, Reservation, Settlement

from .main_thread import Mailbox


@dataclass(frozen=True)
class PostedLedger:
    """A `Ledger` whose every method is done by the owner of `mailbox` on `store`."""

    store: Ledger
    mailbox: Mailbox

    def find(self, call: str) -> CallDocuments | None:
        """Return the answered call of this id, whichever attempt it was."""
        return self.mailbox.do(lambda: self.store.find(call))

    def last_of(self, prefix: str) -> CallDocuments | None:
        """Return the answered call with the highest turn among the ids `prefix/N`."""
        return self.mailbox.do(lambda: self.store.last_of(prefix))

    def reserve(self, reservation: Reservation) -> str | None:
        """Enter a call at its worst case; see `Ledger` for what it raises."""
        return self.mailbox.do(lambda: self.store.reserve(reservation))

    def retry(self, row: str, failure: CallFailed, wait_s: float) -> None:
        """Note that the service turned the call away and will be asked again."""
        self.mailbox.do(lambda: self.store.retry(row, failure, wait_s))

    def settle(self, row: str, settlement: Settlement) -> None:
        """Replace the worst case of an open row by what the call cost."""
        self.mailbox.do(lambda: self.store.settle(row, settlement))

    def fail(self, row: str, failure: CallFailed) -> None:
        """Close an open row without a reply."""
        self.mailbox.do(lambda: self.store.fail(row, failure))
