"""The files of `templates/`: texts with `@WORD@` in the place of what depends on the kernel."""

import re
from collections.abc import Mapping
from importlib.resources import files

_PLACE = re.compile(r"@([A-Z][A-Z_]*)@")


def filled(template: str, words: Mapping[str, str]) -> str:
    """Return the text of a template with its places filled from `words`."""
    text = files("kopt.tools.export").joinpath("templates", f"{template}.txt").read_text("utf-8")
    return _PLACE.sub(lambda match: words[match[1]], text)
