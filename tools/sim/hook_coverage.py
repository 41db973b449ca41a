"""Which memory accesses of a candidate have no hook in front of them, from GCC's own dump.

-fsanitize=thread instruments assignments. A struct that a call which is not inlined takes or
returns by value is loaded or stored by the call: no hook sees it. Such a candidate is refused
rather than half checked.
"""

import re

from .unit import UNIT_NAME

DUMP_FLAG = "-fdump-tree-tsan-lineno=unit.tsan"
"""Makes g++ write the program, as it is right after instrumentation, into unit.tsan."""

_PLACE = re.compile(r"\[[^\[\]]*?:(\d+):\d+(?: discrim \d+)?\] ?")
_END = re.compile(r"\);(?: \[[\w ]+\])*$")  # some calls have a remark: [tail call]
_MEMORY = re.compile(r"\*|->|\bMEM\b|\[")
# Of constant size it becomes moves. The names without __builtin_ lead to the runtime (device.h).
_BLOCK_COPY = re.compile(r"\b__builtin_mem(?:cpy|move|set) \((?![^,]*&)[^,]*,(?![^,]*&)")
# Not calls; or they take pointers and numbers only, among them the text of an assertion.
_UNHOOKED_CALLEES = ("__builtin_", "__assert_fail ", "if ", "switch ")
_STATIC = re.compile(r"^ +static .*?([A-Za-z_][\w.]*)(?: \[.*)?;$")


def unhooked_line(dump: str) -> int | None:
    """Return the candidate's line of the first access without a hook, or None.

    Operands that lie on the thread's own stack need none.
    """
    own = f"[{UNIT_NAME}:"
    statics: set[str] = set()  # shared variables of the function at hand
    for text in dump.splitlines():
        if text.startswith(";; Function "):
            statics.clear()
        declared = _STATIC.match(text)
        if declared is not None:
            statics.add(declared[1])
        place = _PLACE.search(text)
        if own in text and _BLOCK_COPY.search(text):
            return int(place[1]) if place else 1
        for operand in _call_operands(_PLACE.sub("", text.strip())):
            in_memory = _MEMORY.search(operand) or operand.split(".")[0] in statics
            if in_memory and not operand.startswith("&"):
                return int(place[1]) if place else 1
    return None


def _call_operands(statement: str) -> list[str]:
    """Return what a call takes and where its result goes; [] for any other statement."""
    end = _END.search(statement)
    if end is None:
        return []
    depth, start = 1, end.start()
    while depth > 0 and start > 0:
        start -= 1
        depth += {")": 1, "(": -1}.get(statement[start], 0)
    result, assigned, callee = statement[:start].rpartition(" = ")
    if not callee.endswith(" ") or callee.startswith(_UNHOOKED_CALLEES):
        return []
    operands = [argument.strip() for argument in statement[start + 1 : end.start()].split(", ")]
    return [*operands, result] if assigned else operands
