"""Tiny wheels and sdists in the layout of kernel libraries, and pins of them."""

import hashlib
import io
import tarfile
import zipfile
from collections.abc import Mapping

from kopt.tools.docs.library.archives import ALL_MEMBERS
from kopt.tools.docs.library.pins import PackagePin

KERNEL = b"__global__ void scale(float* x) { x[threadIdx.x] *= 2.0f; }\n"
TRITON_KERNEL = b"import triton\n\n@triton.jit\ndef scale(x):\n    pass\n"


def wheel(members: Mapping[str, bytes]) -> bytes:
    """Return a wheel with `members`."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file.getvalue()


def sdist(members: Mapping[str, bytes]) -> bytes:
    """Return an sdist with `members`."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return file.getvalue()


def pin_of(data: bytes, filename: str = "tiny-1.0-py3-none-any.whl") -> PackagePin:
    """Return the pin of a whole file of `data`."""
    return PackagePin(
        project="tiny",
        version="1.0",
        filename=filename,
        sha256=hashlib.sha256(data).hexdigest(),
        size_bytes=len(data),
        is_default=True,
        members=ALL_MEMBERS,
    )
