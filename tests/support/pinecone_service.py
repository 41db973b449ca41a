"""A Pinecone on the loopback: both planes on one address, spoken to by the real SDK.

Every service has an address of its own in 127.0.0.0/8, because the SDK keeps account of failures
by address for the whole process: tests would otherwise depend on their order.
"""

import itertools
import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast
from urllib.parse import parse_qs, unquote, urlsplit

from support.pinecone_store import MOST_BYTES, Fields, Index, Refused, likeness, records_index

KEY = "pcsk_made_up_0123456789"
_HANG_LIMIT_S = 30.0
_PAGE = 100
_addresses = itertools.count(2)


@dataclass(frozen=True)
class Asked:
    """One request as it came."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Fields:
        """The body as one JSON object."""
        return cast("Fields", json.loads(self.body))

    @property
    def lines(self) -> list[Fields]:
        """The body as lines of JSON."""
        return [json.loads(line) for line in self.body.decode().splitlines()]


@dataclass(frozen=True)
class Fault:
    """What happens instead of an answer, once, to the next request whose path has `on`."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""
    how: str = "reply"
    """`reply`; `hang` until the service ends; `cut` the connection; do it and `lose` the reply; or
    `skip`: no fault this time, but those after it."""
    on: str = ""


@dataclass
class PineconeService:
    """What tests script and read."""

    url: str = ""
    index: Index | None = None
    faults: list[Fault] = field(default_factory=list[Fault])
    asked: list[Asked] = field(default_factory=list[Asked])
    ending: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)
    stats_lag: int = 0
    """Calls of describe_index_stats that still see nothing: reads are eventually consistent."""

    def paths(self, part: str) -> list[Asked]:
        """Return the requests whose path has `part`."""
        return [one for one in self.asked if part in one.path]

    def fault(self, path: str) -> Fault | None:
        """Take the first fault that is meant for `path`."""
        with self.lock:
            for fault in self.faults:
                if fault.on in path:
                    self.faults.remove(fault)
                    return None if fault.how == "skip" else fault
        return None

    def answer(self, asked: Asked) -> tuple[int, object]:
        """Return status and document; None for an empty body."""
        if asked.headers.get("api-key") != KEY:
            raise Refused(401, "UNAUTHENTICATED", "Invalid API Key")
        if "x-pinecone-api-version" not in asked.headers:
            raise Refused(400, "INVALID_ARGUMENT", "no API version")
        parts = [asked.method, *(unquote(part) for part in asked.path.strip("/").split("/"))]
        with self.lock:
            answer = self._control_plane(parts, asked) or self._data_plane(parts, asked)
        if answer is None:
            raise Refused(404, "NOT_FOUND", f"{asked.method} {asked.path}")
        return answer

    def _control_plane(self, parts: list[str], asked: Asked) -> tuple[int, object] | None:
        match parts:
            case ["GET", "indexes"]:
                return 200, {"indexes": [self.index.described(self.url)] if self.index else []}
            case ["POST", "indexes", "create-for-model"]:
                return self._create(asked.json)
            case ["GET", "indexes", name]:
                return 200, self._named(name).described(self.url)
            case ["POST", "rerank"]:
                return 200, _reranked(asked.json)
            case _:
                return None

    def _data_plane(self, parts: list[str], asked: Asked) -> tuple[int, object] | None:
        match parts:
            case ["POST", "records", "namespaces", namespace, "upsert"]:
                return self._upsert_records(namespace, asked)
            case ["POST", "records", "namespaces", namespace, "search"]:
                return 200, self._search_records(namespace, asked.json)
            case ["POST", "namespaces", namespace, "documents", action]:
                return 200, self._documents(namespace, action, asked)
            case ["POST", "describe_index_stats"]:
                return 200, self._stats()
            case ["GET", "vectors", "list"]:
                return 200, self._ids(asked)
            case ["DELETE", "namespaces", namespace]:
                self._only().namespaces.pop(namespace, None)
                return 202, None
            case _:
                return None

    def _create(self, wanted: Fields) -> tuple[int, object]:
        if self.index is not None and self.index.name == wanted["name"]:
            raise Refused(409, "ALREADY_EXISTS", "Resource already exists")
        if not {"name", "cloud", "region", "embed"} <= wanted.keys():
            raise Refused(422, "INVALID_ARGUMENT", "missing field")
        field_name = wanted["embed"]["field_map"]["text"]
        self.index = records_index(wanted["name"], field_name, ready_after=2)
        return 201, self.index.described(self.url)

    def _named(self, name: str) -> Index:
        if self.index is None or self.index.name != name:
            raise Refused(404, "NOT_FOUND", f"Resource {name} not found")
        return self.index

    def _only(self) -> Index:
        if self.index is None:
            raise Refused(404, "NOT_FOUND", "no index at this host")
        return self.index

    def _upsert_records(self, namespace: str, asked: Asked) -> tuple[int, object]:
        if asked.headers["content-type"] != "application/x-ndjson":
            raise Refused(415, "INVALID_ARGUMENT", asked.headers["content-type"])
        if len(asked.body) > MOST_BYTES:
            raise Refused(413, "PAYLOAD_TOO_LARGE", "Request size too large")
        self._only().upsert(namespace, asked.lines)
        return 201, None

    def _search_records(self, namespace: str, wanted: Fields) -> object:
        index, query = self._only(), wanted["query"]
        text, top_k = query["inputs"]["text"], query["top_k"]
        found = index.search(namespace, text, query.get("filter", {}), top_k)
        usage = {"read_units": 6}
        if rerank := wanted.get("rerank"):
            if not set(rerank["rank_fields"]) <= set(wanted["fields"]):
                raise Refused(400, "INVALID_ARGUMENT", "rank field is not returned")
            found = sorted(found, key=lambda one: -len(one[index.text_field]))
            found = found[: rerank.get("top_n", top_k)]
            usage["rerank_units"] = 1
        hits = [
            {
                "_id": one["_id"],
                "_score": one["_score"],
                "fields": {name: one[name] for name in wanted["fields"] if name in one},
            }
            for one in found
        ]
        return {"result": {"hits": hits}, "usage": usage}

    def _documents(self, namespace: str, action: str, asked: Asked) -> object:
        index, wanted = self._only(), asked.json
        if action == "upsert":
            index.upsert(namespace, wanted["documents"])
            return {"upserted_count": len(wanted["documents"])}
        if action == "list":
            ids = sorted(index.namespaces.get(namespace, {}))
            documents = [{"_id": id_} for id_ in ids]
            return {"documents": documents, "namespace": namespace, "usage": {"read_units": 1}}
        (clause,) = wanted["score_by"]
        if (clause["type"], clause["field"]) != ("embed", index.text_field):
            raise Refused(400, "INVALID_ARGUMENT", f"clause {clause}")
        found = index.search(namespace, clause["query"], wanted["filter"], wanted["top_k"])
        return {"matches": found, "namespace": namespace, "usage": {"read_units": 1}}

    def _stats(self) -> object:
        self.stats_lag -= 1
        known = self._only().namespaces if self.stats_lag < 0 else {}
        counts = {name: {"vectorCount": len(records)} for name, records in known.items()}
        return {"namespaces": counts, "dimension": 1024, "totalVectorCount": 0}

    def _ids(self, asked: Asked) -> object:
        (namespace,) = asked.query["namespace"]
        ids = sorted(self._only().namespaces.get(namespace, {}))
        start = int(asked.query.get("paginationToken", ["0"])[0])
        page = {"vectors": [{"id": id_} for id_ in ids[start : start + _PAGE]]}
        more = {"pagination": {"next": str(start + _PAGE)}} if start + _PAGE < len(ids) else {}
        return {**page, **more, "namespace": namespace, "usage": {"readUnits": 1}}


@contextmanager
def pinecone_service(index: Index | None = None) -> Generator[PineconeService]:
    """Run a service that has `index`."""
    service = PineconeService(index=index)

    class Handler(_Handler):
        pass

    Handler.service = service
    number = next(_addresses)
    server = ThreadingHTTPServer((f"127.0.{number // 250}.{number % 250}", 0), Handler)
    service.url = f"http://{server.server_address[0]!s}:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield service
    finally:
        service.ending.set()
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    service: PineconeService
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._serve()

    do_POST = do_DELETE = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def _serve(self) -> None:
        split = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = self.rfile.read(int(headers.get("content-length", "0")))
        asked = Asked(self.command, split.path, parse_qs(split.query), headers, body)
        self.service.asked.append(asked)
        fault = self.service.fault(asked.path)
        if fault is None or fault.how == "lose":
            try:
                status, document = self.service.answer(asked)
            except Refused as refused:
                said = {"code": refused.code, "message": refused.message}
                status, document = refused.status, {"error": said, "status": refused.status}
            payload = b"" if document is None else json.dumps(document).encode()
            if fault is None:
                self._reply(status, {}, payload)
        if fault is not None:
            self._fail(fault)

    def _fail(self, fault: Fault) -> None:
        if fault.how == "reply":
            self._reply(fault.status, fault.headers, fault.body)
            return
        if fault.how == "hang":
            self.service.ending.wait(_HANG_LIMIT_S)
        self.close_connection = True

    def _reply(self, status: int, headers: dict[str, str], payload: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("x-pinecone-request-id", "made-up")
        self.send_header("content-length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)


def _reranked(wanted: Fields) -> object:
    (name,) = wanted["rank_fields"]
    scored = [
        {"index": number, "score": likeness(wanted["query"], document[name]) + len(document[name])}
        for number, document in enumerate(wanted["documents"])
    ]
    data = sorted(scored, key=lambda one: -one["score"])[: wanted["top_n"]]
    return {"model": wanted["model"], "data": data, "usage": {"rerank_units": 1}}
