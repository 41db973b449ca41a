"""`push_library`: the library index uploaded to a namespace of its own in Pinecone."""

import asyncio
import time

from kopt.config.errors import BackendUnavailable, SetupError
from kopt.config.files import ensure_folder
from kopt.config.locks import file_lock
from kopt.config.settings import Settings

from .client import opened_client, opened_index
from .deadline import new_loop
from .failures import unavailable
from .index_making import ready_index
from .pacing import Pacing
from .push_plan import Plan, planned
from .push_records import PushProgress, PushRequest, PushResult
from .sent_ids import sent_folder
from .upload import OnProgress, Target, Upload, Way

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
    if settings.pinecone_api_key is None:
        raise SetupError("there is no key to upload with: set PINECONE_API_KEY")
    started = time.monotonic()
    plan = planned(request, settings)
    way = Way(pacing, on_progress)
    total = len(plan.records)
    waiting = PushProgress("wait", 0, total, "another upload from this machine is under way")
    # A lock that is waited for inside the loop would not hear of Ctrl-C.
    with (
        file_lock(
            ensure_folder(settings.docs_cache / "pinecone") / "lock", lambda: on_progress(waiting)
        ),
        asyncio.Runner(loop_factory=new_loop) as runner,
    ):
        result = runner.run(_pushed(plan, request, settings, way))
    return result.model_copy(update={"seconds": round(time.monotonic() - started, 1)})


async def _pushed(plan: Plan, request: PushRequest, settings: Settings, way: Way) -> PushResult:
    from pinecone import RetryConfig
    from pinecone.errors import PineconeError

    upload: Upload | None = None
    try:
        async with opened_client(settings, RetryConfig(max_wait=10.0)) as client:
            way.on_progress(PushProgress("index", 0, len(plan.records)))
            shape, created = await ready_index(client, request, settings, way.pacing)
            # Without retries of the SDK: those of `patiently` can be seen and ended.
            async with opened_index(client, shape.host, RetryConfig(max_retries=0)) as index:
                target = Target(index, shape, sent_folder(shape.host, settings))
                upload = Upload(plan, target, way)
                await upload.send_missing()
                is_visible = await upload.settle()
                deleted = await upload.delete_earlier() if is_visible else ()
    except PineconeError as error:
        reason = str(unavailable(error, settings))
        if upload is not None:
            reason += (
                f"; {upload.tally.there:,} of {len(plan.records):,} records are there, and the"
                " same command goes on from them"
            )
        raise BackendUnavailable(reason) from error
    return PushResult(
        index=settings.pinecone_index_name,
        host=shape.host,
        namespace=plan.namespace,
        created=created,
        sources=plan.sources,
        records=len(plan.records),
        sent=upload.tally.sent,
        requests=upload.tally.requests,
        estimated_tokens=upload.tally.tokens,
        is_visible=is_visible,
        deleted_namespaces=deleted,
        seconds=0.0,
    )
