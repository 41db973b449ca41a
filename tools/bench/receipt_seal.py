"""Seals: what this machine has measured itself, and what is a claim of somebody else.

A promotion seals each receipt with a key that lies in KOPT_HOME: whoever lacks it can write a
receipt with a digest that fits, but none that this machine takes for its own. A receipt of another
machine, or without a seal, is a claim until `kopt verify` has reproduced it here; that is noted
under the same key.
"""

import hashlib
import hmac
from collections.abc import Sequence

from kopt.config.errors import ToolError
from kopt.config.files import ensure_folder, write_atomically
from kopt.config.kept_secret import kept_secret, known_secret
from kopt.config.settings import Settings
from kopt.kernels.receipt import Receipt, ReceiptSeal, ReceiptStanding

_KEY = "receipt_seal"
STANDINGS: dict[ReceiptStanding, str] = {
    "sealed": "sealed by this machine, which measured it",
    "reproduced": "claimed by its receipt; reproduced on this machine",
    "claimed": "claimed by its receipt; not measured here",
}


def sealed(receipt: Receipt, settings: Settings) -> Receipt:
    """Return `receipt`, which has its digest, with the seal of this machine.

    Raises:
        SetupError: The key cannot be kept.
    """
    key = kept_secret(settings.home, _KEY)
    mark = ReceiptSeal(key=_name(key), hmac=_mark(key, "receipt", receipt.digest))
    return receipt.model_copy(update={"seal": mark})


def standing_of(receipts: Sequence[Receipt], settings: Settings) -> ReceiptStanding:
    """Return what the receipts of one promotion rest on, the weakest of them.

    Raises:
        ToolError: One names this machine's key, and its seal is not of that key.
    """
    found = {_standing(one, settings) for one in receipts}
    if found == {"sealed"}:
        return "sealed"
    return "claimed" if "claimed" in found or not found else "reproduced"


def _standing(receipt: Receipt, settings: Settings) -> ReceiptStanding:
    key = known_secret(settings.home, _KEY)
    if key is None:
        return "claimed"
    if receipt.seal is not None and receipt.seal.key == _name(key):
        if not hmac.compare_digest(receipt.seal.hmac, _mark(key, "receipt", receipt.digest)):
            raise ToolError(
                f"the receipt {receipt.digest[:12]} was tampered with: it names this machine's key"
                " and its seal is of other content; take it from where it was whole, or promote"
                " again"
            )
        return "sealed"
    try:
        noted = (settings.home / "reproduced" / receipt.digest).read_text("ascii")
    except (OSError, ValueError):
        return "claimed"
    is_own = hmac.compare_digest(noted, _mark(key, "reproduced", receipt.digest))
    return "reproduced" if is_own else "claimed"


def note_reproduced(receipts: Sequence[Receipt], settings: Settings) -> None:
    """Note that receipts were reproduced on this machine.

    Raises:
        SetupError: KOPT_HOME cannot be written.
    """
    key = kept_secret(settings.home, _KEY)
    folder = ensure_folder(settings.home / "reproduced")
    for one in receipts:
        write_atomically(folder / one.digest, _mark(key, "reproduced", one.digest))


def _name(key: bytes) -> str:
    return _mark(key, "name", "")[:16]


def _mark(key: bytes, what: str, digest: str) -> str:
    return hmac.new(key, f"kopt {what} {digest}".encode(), hashlib.sha256).hexdigest()
