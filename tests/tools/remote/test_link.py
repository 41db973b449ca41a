"""A connection to what says something else than kopt does: refused, never waited for."""

import struct
import subprocess
import sys

import pytest

from kopt.config.callbacks import ignore
from kopt.config.errors import SetupError
from kopt.config.remote_address import RemoteAddress
from kopt.tools.remote.bootstrap import MARK
from kopt.tools.remote.calls import CopyCeilingCall
from kopt.tools.remote.code_bundle import code_bundle
from kopt.tools.remote.link import Link, LinkLost
from kopt.tools.remote.ssh_pipe import SshPipe

FACTS = (
    '{"python": "3.12.4", "executable": "/usr/bin/\\u001b[31mpython", "is_new_enough": true,'
    ' "lacking": [], "has_code": true, "home": "/home/ada"}'
)


def _pipe(*said: bytes, errors: bytes = b"") -> SshPipe:
    """Return a connection to a process that writes this and reads until it is hung up on."""
    code = (
        f"import sys; sys.stderr.buffer.write({errors!r}); sys.stderr.flush()\n"
        f"sys.stdout.buffer.write({b''.join(said)!r}); sys.stdout.flush()\n"
        "sys.stdin.buffer.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    return SshPipe(process, RemoteAddress("box", "cuda:0"))


def _line(facts: str) -> bytes:
    return f"{MARK}{facts}\n".encode()


def _frame(head: bytes, message: bytes) -> bytes:
    return struct.pack("<IIQ", len(head), len(message), 0) + head + message


@pytest.mark.parametrize("facts", ["{}", FACTS.replace("[]", "5")])
def test_facts_of_another_form_are_refused(facts: str) -> None:
    pipe = _pipe(_line(facts))
    try:
        with pytest.raises(SetupError, match="what answers there is no kopt"):
            pipe.greet()
    finally:
        pipe.hang_up()


def test_what_a_machine_says_of_itself_is_plain() -> None:
    pipe = _pipe(_line("5"), _line(FACTS), errors=b"ssh: no such host\r\n")
    try:
        python = pipe.greet()
        assert python is not None
        assert python.executable == "/usr/bin/\N{REPLACEMENT CHARACTER}[31mpython"
    finally:
        pipe.hang_up()
    assert pipe.ending(5.0)[0] == "ssh: no such host\n"


@pytest.mark.parametrize(
    "answer",
    [
        b"Segmentation fault in something that is no frame",
        _frame(b'{"lane":1}', b'{"kind":"no_such_answer"}'),
        _frame(
            b'{"lane":1,"arrays":[{"name":"x","dtype":"no_such_type","shape":[4],"chunk_bytes":4}]}',
            b'{"kind":"done"}',
        ),
    ],
)
def test_an_answer_of_no_form_ends_the_connection(answer: bytes) -> None:
    pipe = _pipe(_line(FACTS), _line('{"ready": true}'), answer)
    python = pipe.greet()
    assert python is not None
    assert pipe.bring(code_bundle(), python)
    link = Link(pipe, ignore)
    try:
        with link.lane() as lane, pytest.raises(LinkLost):
            link.ask(lane, CopyCeilingCall())
    finally:
        link.close()
