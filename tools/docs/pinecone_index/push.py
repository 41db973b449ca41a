"""`push_library`: the library index uploaded to a namespace of its own in Pinecone."""

import time
from typing import TYPE_CHECKING

from kopt.config.errors import BackendUnavailable, SetupError
from kopt.config.files import ensure_folder
from kopt.config.locks import file_lock
from kopt.config.settings import Settings

from .push_plan import planned
from .push_records import PushProgress, PushRequest, PushResult
from .service import (
    EMBEDDING_MODEL,
    TEXT_FIELD,
    IndexShape,
    find_index,
    opened_client,
    opened_index,
    unavailable,
)
from .upload import OnProgress, Pacing, Upload, sent_folder, until

if TYPE_CHECKING:
    from pinecone import Pinecone
    from pinecone.errors import PineconeError

PATIENT = Pacing()


def push_library(
    request: PushRequest,
    settings: Settings,
    on_progress: OnProgress,
    pacing: Pacing = PATIENT,
) -> PushResult:
    """Upload what the namespace of this library lacks, then delete those of earlier ones.

    Deleted are only namespaces that were filled from this machine, and only once the service
    counts all records of the new one.

    Raises:
        SetupError: There is no key or no library index, or no folder can be written.
        ToolError: A source is not in the library or may not be sent.
        BackendUnavailable: The service does not do it; what was sent stays, and the same call goes
            on from there.
    """
    from pinecone import RetryConfig
    from pinecone.errors import PineconeError

    if settings.pinecone_api_key is None:
        raise SetupError("there is no key to upload with: set PINECONE_API_KEY")
    started = time.monotonic()
    plan = planned(request, settings)
    total = len(plan.records)
    waiting = PushProgress("wait", 0, total, "another upload from this machine is under way")
    lock = ensure_folder(settings.docs_cache / "pinecone") / "lock"
    upload: Upload | None = None
    try:
        with (
            file_lock(lock, lambda: on_progress(waiting)),
            opened_client(settings, RetryConfig(max_wait=10.0)) as client,
        ):
            on_progress(PushProgress("index", 0, total))
            shape, created = ready_index(client, request, settings, pacing)
            # Without retries of the SDK: those of `Upload` can be seen and ended.
            with opened_index(client, shape.host, RetryConfig(max_retries=0)) as index:
                folder = sent_folder(shape.host, settings)
                upload = Upload(plan, index, shape, folder, pacing, on_progress)
                upload.send_missing()
                is_visible = upload.settle()
                deleted = upload.delete_earlier() if is_visible else ()
    except PineconeError as error:
        raise _unfinished(error, settings, upload) from error
    return PushResult(
        index=settings.pinecone_index_name,
        host=shape.host,
        namespace=plan.namespace,
        created=created,
        sources=dict(plan.sources),
        records=total,
        sent=upload.sent,
        requests=upload.requests,
        estimated_tokens=upload.tokens,
        is_visible=is_visible,
        deleted_namespaces=deleted,
        seconds=round(time.monotonic() - started, 1),
    )


def _unfinished(
    error: "PineconeError", settings: Settings, upload: Upload | None
) -> BackendUnavailable:
    """Return why an upload ended before its time, and what of it is there."""
    reason = str(unavailable(error, settings))
    if upload is not None:
        reason += (
            f"; {upload.there:,} of {len(upload.plan.records):,} records are there, and the"
            " same command goes on from them"
        )
    return BackendUnavailable(reason)


_READY_S = 300.0


def ready_index(
    client: "Pinecone", request: PushRequest, settings: Settings, pacing: Pacing
) -> tuple[IndexShape, bool]:
    """Return the index of the settings once it is ready, and whether it was made.

    With PINECONE_INDEX_HOST there is an index, and none is made.

    Raises:
        BackendUnavailable: It does not become ready, or embeds no text.
        PineconeError: It is not there and was not to be made, or a request failed.
    """
    from pinecone.errors import NotFoundError

    if settings.pinecone_index_host:
        return find_index(client, settings), False
    created = False
    try:
        client.indexes.describe(settings.pinecone_index_name)
    except NotFoundError:
        if not request.create:
            raise
        created = _make(client, request, settings)

    def is_ready() -> bool:
        return client.indexes.describe(settings.pinecone_index_name).status.ready

    if not until(is_ready, _READY_S, pacing):
        raise BackendUnavailable(
            f"Pinecone's index {settings.pinecone_index_name} is not ready after"
            f" {_READY_S:.0f} s: run it again later"
        )
    return find_index(client, settings), created


def _make(client: "Pinecone", request: PushRequest, settings: Settings) -> bool:
    """Make an index of the records API; say whether it was us and not another process."""
    from pinecone.errors import ConflictError

    try:
        client.indexes.create_for_model(
            name=settings.pinecone_index_name,
            cloud=request.cloud,
            region=request.region,
            embed={
                "model": EMBEDDING_MODEL,
                "metric": "cosine",
                "field_map": {"text": TEXT_FIELD},
                "read_parameters": {"input_type": "query", "truncate": "END"},
                "write_parameters": {"input_type": "passage", "truncate": "END"},
            },
            tags={"made-by": "kopt"},
            timeout=-1,  # it is waited for here, where waiting can be seen and ended
        )
    except ConflictError:
        return False
    return True
