"""The first code on the other machine: takes kopt's own code, once a version, and runs it.

It is sent as text and runs under whatever Python is there, with the standard library alone; an old
one must get far enough to say so. It writes lines that begin with `MARK` to stdout, and reads one
line and perhaps an archive from stdin; then kopt speaks over both (`server/far/service.py`).
"""

import hashlib
import importlib
import importlib.util
import io
import json
import os
import shutil
import sys
import tarfile
import tempfile
import time
import typing

MARK = "kopt-far "
LEAST_PYTHON = (3, 11)
_KEPT_S = 30 * 24 * 3600
"""How long a version's code stays after its last use."""
_SERVICE = "kopt.server.far.service"


def main(home: str, digest: str, modules: "list[str]") -> None:
    """Say what is here, take the code if it is not, and serve until the caller hangs up."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # prints must not garble the answers
    code = os.path.join(home, "remote", "code", digest)
    try:
        is_new = sys.version_info[:2] >= LEAST_PYTHON
        facts = {
            "python": ".".join(map(str, sys.version_info[:3])),
            "executable": sys.executable,
            "is_new_enough": is_new,
            "lacking": [name for name in modules if not _is_installed(name)] if is_new else [],
            "has_code": os.path.isdir(code),
            "home": home,
        }
        _say(answers, facts)
        line = sys.stdin.buffer.readline()
        if not line:
            return
        parcel = json.loads(line.decode("ascii"))
        if parcel["bytes"]:
            _store(code, parcel)
        os.utime(code)
        _sweep(os.path.dirname(code))
    except OSError as error:
        said = str(error.strerror or error)
        _say(answers, {"error": "cannot keep kopt's code in " + home + ": " + said})
        return
    except ValueError as error:
        _say(answers, {"error": str(error)})
        return
    sys.path.insert(0, code)  # children are told of the path by kopt
    try:
        service = importlib.import_module(_SERVICE)
    except ImportError as error:
        _say(answers, {"error": "kopt's code cannot be imported there: " + str(error)})
        return
    sys.argv[:] = ["kopt", "over-ssh"]  # who waits for this process to let a GPU go is told so
    _say(answers, {"ready": True})
    service.main(sys.stdin.buffer, answers, home)


def _say(answers: "typing.BinaryIO", facts: "typing.Mapping[str, object]") -> None:
    answers.write((MARK + json.dumps(facts) + "\n").encode("ascii"))
    answers.flush()


def _is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):  # the package around it is missing
        return False


def _store(code: str, parcel: "dict[str, typing.Any]") -> None:
    """Unpack the archive beside its place and give it its name, which another may have done."""
    archive = sys.stdin.buffer.read(parcel["bytes"])
    if hashlib.sha256(archive).hexdigest() != parcel["sha256"]:
        raise ValueError("kopt's code did not arrive whole")
    os.makedirs(os.path.dirname(code), mode=0o700, exist_ok=True)
    fresh = tempfile.mkdtemp(prefix=".new-", dir=os.path.dirname(code))
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as files:
            if hasattr(tarfile, "data_filter"):
                files.extractall(fresh, filter="data")
            else:  # Python 3.11.3 and earlier; the archive is kopt's own
                files.extractall(fresh)
        if not os.path.isdir(code):
            os.sync()  # what has the name is believed, also after a power loss
            os.rename(fresh, code)
    except OSError:
        if not os.path.isdir(code):
            raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _sweep(codes: str) -> None:
    """Remove the code of versions that nobody has used for a month."""
    for entry in os.scandir(codes):
        try:
            used_s = os.stat(entry.path).st_mtime
        except FileNotFoundError:  # another caller has given its code its name, or swept it
            continue
        if time.time() - used_s > _KEPT_S:
            shutil.rmtree(entry.path, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[2], sys.argv[3], sys.argv[4].split(","))
