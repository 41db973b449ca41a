"""What Ray starts on a node: takes kopt's code, once a version, and has it answer.

Its classes travel to the node themselves, and kopt comes with them, so that a cluster runs the code
of its caller, as another machine does (`tools/remote/bootstrap.py`): no image has to have kopt, and
no other version of it is ever spoken to. So it uses the standard library alone, and answers with
what unpickles everywhere.
"""

import importlib
import importlib.util
import inspect
import io
import os
import shutil
import sys
import tarfile
import tempfile
import traceback
from typing import Any

UNFIT = "unfit"
"""Key of an answer that says why nothing can be answered on this node."""


class Seat:
    """An actor that does one call at a time, in the process's main thread."""

    def __init__(self, parcel: dict[str, Any], *archive: bytes) -> None:
        """Take the code and begin; what goes wrong is the answer to every call.

        Args:
            parcel: digest and modules of the code, `module:Class` to make of it as `entry`, and
                its arguments.
            archive: The code as `CodeBundle.archive` gives it, in pieces.
        """
        self._inner, self._unfit = _entered(parcel, b"".join(archive))

    def ask(self, method: str, *arguments: Any) -> Any:
        """Return what a method of the entered class answers."""
        return {UNFIT: self._unfit} if self._unfit else getattr(self._inner, method)(*arguments)


class AsyncSeat:
    """An actor that does any number of calls at once, in one event loop."""

    def __init__(self, parcel: dict[str, Any], *archive: bytes) -> None:
        """Enter kopt's code; the arguments are those of `Seat`."""
        self._inner, self._unfit = _entered(parcel, b"".join(archive))

    async def ask(self, method: str, *arguments: Any) -> Any:
        """Return what a method of the entered class answers, awaited if it has to be."""
        if self._unfit:
            return {UNFIT: self._unfit}
        answer = getattr(self._inner, method)(*arguments)
        return await answer if inspect.isawaitable(answer) else answer


def _entered(parcel: dict[str, Any], archive: bytes) -> tuple[Any, str]:
    """Return an object of the entry, and "" or why there is none."""
    try:
        lacking = [name for name in parcel["modules"] if not _is_installed(name)]
        if lacking:
            wanted = " ".join(repr(parcel["modules"][name]) for name in lacking)
            return None, (
                f"no {', '.join(lacking)} in {sys.executable}: put into the cluster's image or"
                f" environment {wanted}"
            )
        home = os.environ.get("KOPT_HOME") or os.path.expanduser("~/.cache/kopt")
        code = os.path.join(home, "remote", "code", parcel["digest"])
        if not os.path.isdir(code):
            _store(code, archive)
        os.utime(code)
        if code not in sys.path:
            sys.path.insert(0, code)  # children are told of the path by kopt
        module, _, name = parcel["entry"].partition(":")
        kind = getattr(importlib.import_module(module), name)
        return kind(home=home, **parcel["arguments"]), ""
    except OSError as error:
        return None, f"cannot keep kopt's code: {error}"
    except Exception as error:  # the outermost frame: Ray would start it again and again
        is_told = any(one.__name__ == "KoptError" for one in type(error).__mro__)
        return None, str(error) if is_told else traceback.format_exc()


def _is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):  # the package around it is missing
        return False


def _store(code: str, archive: bytes) -> None:
    """Unpack the archive beside its place and give it its name, which another may have done."""
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
