"""What NVIDIA's tools print or make of a cubin, kept beside the compile cache, compressed.

It is found by the content of all that it was made from, put in place by one rename, and made again
where it is damaged. It is no compile: a folder of the compile cache has a record of its facts.
"""

import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress

from kopt.config.errors import SetupError
from kopt.config.files import content_hash, ensure_folder, write_atomically
from kopt.config.settings import Settings

_FAST = 1
"""zlib's level: an output of a megabyte takes ten milliseconds."""


def kept_output(
    made_from: Iterable[str | bytes], make: Callable[[], bytes | None], settings: Settings
) -> bytes | None:
    """Return what `make` has returned for these contents; it is called if nothing is kept.

    Args:
        made_from: All that decides about the output: the tool, its version and options, its input.
        make: Makes the output; None, or what it raises, is not kept.
        settings: Where the compile cache is. Where it cannot be written nothing is kept.
    """
    path = settings.cubin_cache.absolute() / "outputs" / f"{content_hash(made_from)}.z"
    with suppress(OSError, zlib.error):
        return zlib.decompress(path.read_bytes())
    output = make()
    if output is not None:
        with suppress(OSError, SetupError):
            ensure_folder(path.parent)
            write_atomically(path, zlib.compress(output, _FAST), durable=False)
    return output
