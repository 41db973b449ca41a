"""A Pinecone that fails costs a search its deadline at most, and one line that says what to do."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from kopt.config.errors import BackendUnavailable
from kopt.config.settings import Settings
from kopt.tools.docs.indexing.filters import Filters
from kopt.tools.docs.pinecone_index.asking import (
    REST_S,
    WITHOUT_RERANKER_S,
    PineconeBackend,
)
from kopt.tools.docs.pinecone_index.push_plan import namespace_of
from support.pinecone_service import KEY, Fault, PineconeService

FILTERS = Filters(("vllm",))
SOON = {"retry-after": "0"}
CUT = Fault(how="cut", on="/search")
GARBLED = Fault(200, {"content-encoding": "gzip"}, b"no gzip", on="/search")
UNANSWERED_S = 0.3
PATIENT_S = 30.0
"""For what must answer: a busy machine may need seconds to import the SDK."""


class Clock:
    """A clock that is set by hand."""

    now = 1000.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


@pytest.fixture
def namespace(service: PineconeService, settings: Settings) -> str:
    """The namespace of the library, with two records."""
    name = namespace_of(settings)
    assert name is not None and service.index is not None
    records = [("vllm:short#1", "norm"), ("vllm:long#1", "norm of quite some other rows")]
    fields = [{"_id": id_, "chunk_text": text, "source": "vllm"} for id_, text in records]
    service.index.upsert(name, fields)
    return name


def failure(backend: PineconeBackend) -> str:
    """Return why there is no answer."""
    with pytest.raises(BackendUnavailable) as caught:
        backend.search("norm", FILTERS, 5)
    return str(caught.value)


@pytest.mark.parametrize(
    ("faults", "words"),
    [
        ([Fault(401)], ["401", "set PINECONE_API_KEY"]),
        ([Fault(402)], ["402", "plan"]),
        ([Fault(403)], ["403", "cuda-kernels-v2"]),
        ([Fault(404)], ["404", "kopt docs push --create", "PINECONE_INDEX_NAME"]),
        ([Fault(404, on="/search")], ["404", "kopt docs push --create"]),
        ([Fault(429, SOON, on="/search")] * 2, ["429", "limit"]),
        ([Fault(500, SOON, on="/search")] * 2, ["500", "later"]),
        ([Fault(503, SOON)] * 2, ["503", "later"]),
        ([Fault(200, body=b"<html>hello</html>")], ["not Pinecone", "PINECONE_INDEX_HOST"]),
        ([Fault(200, body=b"[]", on="/search")], ["not Pinecone"]),
        ([Fault(400, body=b"no JSON\n\x1b[31mred", on="/search")], ["400", "no JSON [31mred"]),
        ([GARBLED], ["stumbles over what answered", "DecodingError"]),
        ([CUT, CUT], ["cannot be reached", "127.0."]),
    ],
)
@pytest.mark.usefixtures("namespace")
def test_each_failure_says_in_one_line_what_to_do(
    service: PineconeService, settings: Settings, faults: list[Fault], words: list[str]
) -> None:
    service.faults = list(faults)
    reason = failure(PineconeBackend(settings, PATIENT_S))
    assert all(word in reason for word in words), reason
    assert reason.isprintable()


@pytest.mark.parametrize("fault", [Fault(503, SOON, on="/search"), CUT, Fault(429, SOON)])
@pytest.mark.usefixtures("namespace")
def test_a_failure_that_passes_at_once_is_not_noticed(
    service: PineconeService, settings: Settings, fault: Fault
) -> None:
    service.faults = [fault]
    assert PineconeBackend(settings, PATIENT_S).search("norm", FILTERS, 1) == ("vllm:long#1",)


@pytest.mark.usefixtures("namespace")
def test_a_limit_is_named_although_the_service_asks_to_wait_for_a_minute(
    service: PineconeService, settings: Settings
) -> None:
    service.faults = [Fault(429, {"retry-after": "60"}, on="/search")] * 4
    assert "429" in failure(PineconeBackend(settings, PATIENT_S))
    assert len(service.paths("/search")) == 2


@pytest.mark.parametrize("part", ["/indexes", "/search"])
@pytest.mark.usefixtures("namespace")
def test_a_service_that_is_silent_is_left_at_the_deadline(
    service: PineconeService, settings: Settings, part: str
) -> None:
    service.faults = [Fault(how="hang", on=part)]
    assert failure(PineconeBackend(settings, UNANSWERED_S)) == (
        "Pinecone did not answer within 0.3 s"
    )


@pytest.mark.usefixtures("service")  # else the public one would be asked about the host
def test_an_address_that_is_none_is_a_failure_like_others(settings: Settings) -> None:
    for host in ("nowhere", "http://[x", "a..b.invalid"):
        reason = failure(PineconeBackend(replace(settings, pinecone_index_host=host), PATIENT_S))
        assert "host" in reason.lower(), reason


@pytest.mark.usefixtures("namespace")
def test_certificates_that_are_not_there_are_a_failure_like_others(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/ca.pem")
    assert "does not work here: [Errno 2]" in failure(PineconeBackend(settings, PATIENT_S))


@pytest.mark.parametrize("letter", ["\u200b", "\x1c", "\x7f", "\u2028", "\ufe0f", "\u3164", "\n"])
@pytest.mark.usefixtures("namespace")
def test_the_key_is_in_no_message_even_if_something_unseen_breaks_it_up(
    service: PineconeService, settings: Settings, letter: str
) -> None:
    said = json.dumps({"message": f"the key {letter.join(KEY)} is bad"}).encode()
    service.faults = [Fault(400, body=said)]
    assert "the key *** is bad" in failure(PineconeBackend(settings, PATIENT_S))


@pytest.mark.usefixtures("namespace")
def test_the_key_is_in_no_message_even_if_the_service_repeats_it(
    service: PineconeService, settings: Settings
) -> None:
    said = json.dumps({"message": f"the key {KEY} is bad"}).encode()
    service.faults = [Fault(400, body=said)]
    backend = PineconeBackend(settings, PATIENT_S)
    with pytest.raises(BackendUnavailable, match=r"the key \*\*\* is bad") as caught:
        backend.search("norm", FILTERS, 5)
    assert KEY not in f"{caught.value!r} {backend!r}"


@pytest.mark.usefixtures("namespace")
def test_after_a_failure_it_rests_and_then_is_asked_anew(
    service: PineconeService, settings: Settings
) -> None:
    clock = Clock()
    backend = PineconeBackend(settings, PATIENT_S, clock)
    service.faults = [Fault(403, on="/search")]
    first = failure(backend)
    requests = len(service.asked)
    clock.now += REST_S - 10
    assert failure(backend) == f"{first}; it is asked again in 10 s"
    assert len(service.asked) == requests
    clock.now += 10
    assert backend.search("norm", FILTERS, 1) == ("vllm:long#1",)
    assert len(service.paths("/indexes")) == 2  # it may have been made anew


@pytest.mark.usefixtures("namespace")
def test_what_the_client_stumbles_over_is_rested_from_too(
    service: PineconeService, settings: Settings
) -> None:
    backend = PineconeBackend(settings, PATIENT_S, Clock())
    service.faults = [GARBLED]
    first = failure(backend)
    requests = len(service.asked)
    assert failure(backend) == f"{first}; it is asked again in 30 s"
    assert len(service.asked) == requests


@pytest.mark.usefixtures("namespace")
def test_without_reranking_left_the_order_is_that_of_the_embedding(
    service: PineconeService, settings: Settings
) -> None:
    clock = Clock()
    backend = PineconeBackend(settings, PATIENT_S, clock)
    said = b'{"error": {"message": "max rerank requests per month reached"}}'
    service.faults = [Fault(429, SOON, said, on="/search")] * 2
    for _ in range(2):
        assert backend.search("norm", FILTERS, 1) == ("vllm:short#1",)
    assert ["rerank" in one.json for one in service.paths("/search")] == [True, True, False, False]
    clock.now += WITHOUT_RERANKER_S
    assert backend.search("norm", FILTERS, 1) == ("vllm:long#1",)


_HANGING = """
import socket, sys, threading
from pathlib import Path
from kopt.config.errors import BackendUnavailable
from kopt.config.settings import Settings
from kopt.tools.docs.pinecone_index.asking import PineconeBackend
from kopt.tools.docs.indexing.filters import Filters

class Import:
    def find_spec(self, name, path, target=None):
        if name == "pinecone":
            threading.Event().wait()

if sys.argv[2] == "import":
    sys.meta_path.insert(0, Import())
else:
    socket.getaddrinfo = lambda *a, **k: threading.Event().wait()
settings = Settings(Path(sys.argv[1]), pinecone_api_key="k", pinecone_index_host="a.invalid")
try:
    PineconeBackend(settings, 1.5).search("norm", Filters(("vllm",)), 5)
except BackendUnavailable as error:
    print(error)
"""


@pytest.mark.slow  # a process for each
@pytest.mark.parametrize("what", ["import", "name server"])
def test_what_never_answers_does_not_hold_the_process(settings: Settings, what: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _HANGING, str(settings.home), what],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert "did not answer" in ended.stdout
