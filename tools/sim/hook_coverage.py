"""Which memory accesses of a candidate have no hook in front of them, from GCC's own dump.

-fsanitize=thread instruments assignments. A struct that a call which is not inlined takes or
returns by value is loaded or stored by the call: no hook sees it. Such a candidate is refused
rather than half checked.
"""

import re

DUMP_FLAG = "-fdump-tree-tsan-lineno=unit.tsan"
"""Makes g++ write the program, as it is right after instrumentation, into unit.tsan."""

_PLACE = re.compile(r"\[[^\[\]]*?:(\d+):\d+(?: discrim \d+)?\] ?")
_CALL = re.compile(
    r"^(?:(?P<result>\S.*?) = )?(?P<callee>[A-Za-z_][\w:~<>, ]*?) \((?P<arguments>.*)\);"
)
_MEMORY = re.compile(r"\*|->|\bMEM\b|\[")


def unhooked_line(dump: str) -> int | None:
    """Return the candidate's line of the first access without a hook, or None."""
    for text in dump.splitlines():
        place = _PLACE.search(text)
        call = _CALL.match(_PLACE.sub("", text.strip()))
        if call is None or call["callee"].startswith(("__builtin_", "if", "switch", "goto")):
            continue
        operands = [argument.strip() for argument in call["arguments"].split(", ")]
        operands.append(call["result"] or "")
        if any(_MEMORY.search(o) and not o.startswith("&") for o in operands):
            return int(place.group(1)) if place else 1
    return None
