"""Reading and writing receipts.

A receipt carries the SHA-256 of its own canonical JSON, so that a damaged or edited one is noticed.
That is no signature: whoever edits a receipt can compute it again. What stands against that is the
seal of the machine that promoted it (`receipt_seal.py`), and measuring again (`reproduction.py`).
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from math import isfinite
from pathlib import Path
from typing import Any, NoReturn, cast

from pydantic import ValidationError

from kopt.config.errors import ToolError
from kopt.config.plain_text import is_plain, plain
from kopt.kernels.candidate import read_candidate
from kopt.kernels.receipt import Receipt
from kopt.kernels.shipped_kernels import source_of

from .receipt_rule import contradiction

SCHEMA = "kopt.receipt/2"
OLD_SCHEMA = "kopt.receipt/1"
"""Holds its source, and covers every workload of the promotion."""
MAX_BYTES = 256 << 20
"""Limit of a file's size: 6 measurements of 1,600 pairs take 200 KB a workload."""
WHAT_IT_IS = (
    "a receipt is the .receipt.json that `kopt bench FILE --promote` writes beside a winner, in "
    "KOPT_HOME/winners (~/.kopt/winners) or where --winners says"
)


def with_digest(receipt: Receipt) -> Receipt:
    """Return `receipt` with its digest."""
    return receipt.model_copy(update={"digest": _digest(_document(receipt))})


def receipt_text(receipt: Receipt) -> str:
    """Return the file of a receipt that has its digest."""
    return json.dumps(_document(receipt), ensure_ascii=False, allow_nan=False) + "\n"


def read_receipt(path: Path) -> Receipt:
    """Return the receipt in `path`.

    Raises:
        ToolError: It cannot be read, is of another schema, damaged, edited, or contradicts itself;
            or its source is missing or has changed.
    """
    document = _read_document(path)
    _refuse_unseen(path, document)
    schema = document.get("schema")
    if schema is None:
        raise ToolError(f"{path} is no receipt: it names no schema; {WHAT_IT_IS}")
    if schema not in (SCHEMA, OLD_SCHEMA):
        raise ToolError(
            f"{path} has schema {str(schema)[:60]!r}, not {SCHEMA!r}: it is no receipt that this "
            f"kopt reads; {WHAT_IT_IS}"
        )
    stated = document.get("digest")
    if stated != _digest(document):
        raise ToolError(
            f"{path} was damaged or edited after it was made: its content has another digest than "
            f"it states ({str(stated)[:12]}); take it from where it was whole, or promote again"
        )
    if schema == SCHEMA:
        document["source"] = _source(path, document)
    try:
        receipt = Receipt.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ToolError(f"{path} is no whole receipt: {where}: {first['msg']}") from error
    found = contradiction(receipt)
    if found is not None:
        raise ToolError(f"{path} contradicts itself: {found}")
    return receipt


_PROSE = frozenset({"reason", "differences", "message", "hint", "excerpt"})
"""Fields of a receipt that may have several lines; none of them is printed as it stands."""


def _refuse_unseen(path: Path, document: Mapping[str, Any]) -> None:
    """Refuse what would make a receipt look like another one where it is printed or exported.

    Raises:
        ToolError: It has control characters or invisible ones; the message names the field.
    """
    for where, text in _texts(document):
        if not is_plain(text, "\n\t" if where[-1:] and where[-1] in _PROSE else ""):
            field = plain(".".join(where), "")
            raise ToolError(
                f"{path} is no receipt that kopt wrote: {field[:80]} has control characters or"
                " invisible ones"
            )


def _texts(value: object, where: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Give every text of a JSON document with its place; the source of format 1 is left out."""
    if isinstance(value, str):
        yield where, value
    elif isinstance(value, list):
        for one in cast(list[object], value):
            yield from _texts(one, where)
    elif isinstance(value, dict):
        for name, one in cast(dict[str, object], value).items():
            yield where, name
            if (*where, name) != ("source",):
                yield from _texts(one, (*where, name))


def _source(path: Path, document: Mapping[str, Any]) -> str:
    """Return the source that a receipt names, which must be the one that it was made of."""
    place = source_of(path)
    try:
        source = read_candidate(place)
    except ToolError as error:
        raise ToolError(
            f"the source of {path} is not beside it ({error}); copy both files, or promote again"
        ) from error
    if source.id != document.get("candidate"):
        raise ToolError(
            f"{place} has changed since {path.name} was made of it: its SHA-256 is {source.id[:12]}"
            f", not {str(document.get('candidate'))[:12]}; take it from where it was whole, or"
            " promote again"
        )
    return source.source


def _document(receipt: Receipt) -> dict[str, Any]:
    document = receipt.model_dump(mode="json", by_alias=True)
    if receipt.seal is None:  # a receipt of before there were seals keeps its text
        del document["seal"]
    if receipt.precision == "ieee":  # nor were there others
        del document["precision"]
    if receipt.check.race_check is None:  # nor was the simulator asked
        del document["check"]["race_check"]
    return document


def _digest(document: Mapping[str, Any]) -> str:
    """Return the SHA-256 over the JSON without `digest` and `seal`: keys sorted, no blanks, UTF-8.

    Floats are written as the shortest text that reads back as the same number, so that reading and
    writing keep the digest.
    """
    bare = {key: value for key, value in document.items() if key not in ("digest", "seal")}
    text = json.dumps(bare, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _read_document(path: Path) -> dict[str, Any]:
    try:
        if not path.is_file():
            raise ToolError(
                f"cannot read {path}: {'it is a folder' if path.is_dir() else 'no such file'}"
            )
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise ToolError(f"{path} has {size} bytes; no receipt is that large")
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ToolError(f"cannot read {path}: {said}") from error
    try:
        document: object = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise ToolError(f"{path} is damaged, or no receipt: {error}; {WHAT_IT_IS}") from error
    if not isinstance(document, dict):
        raise ToolError(f"{path} is no receipt: it holds no JSON object; {WHAT_IT_IS}")
    return {str(key): value for key, value in document.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] -- JSON has no types


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise ValueError(f"{text[:20]} is too large for a number")
    return value
