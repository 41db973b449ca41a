"""Where the global loads of a kernel stand to its wait and its trigger of a dependent launch.

Read from the order of its machine code, which is the order of execution where the code is straight,
as in a kernel that loads a row or a few vectors. No time is predicted from it.
"""

from collections.abc import Sequence

from kopt.kernels.compile_result import DependencyOrder

_WAIT, _TRIGGER = "ACQBULK", "PREEXIT"
"""griddepcontrol.wait and griddepcontrol.launch_dependents, as nvdisasm of CUDA 13.2 names them."""
_LOADS = frozenset({"LDG", "LDGSTS", "UTMALDG"})
_UNTOLD = frozenset({"CALL", "UBLKCP"})
"""The code of a call stands elsewhere; a bulk copy may go either way."""


def dependency_order(opcodes: Sequence[str]) -> DependencyOrder | None:
    """Return where the loads among the `opcodes` of a kernel stand, by its first wait and trigger.

    Args:
        opcodes: In the order of the code, with or without modifiers: `LDG.E.128`, `LDG.128`.

    Returns:
        None where the order of the code does not tell.
    """
    operations = [opcode.partition(".")[0] for opcode in opcodes]
    if not _UNTOLD.isdisjoint(operations):
        return None
    wait = operations.index(_WAIT) if _WAIT in operations else None
    trigger = operations.index(_TRIGGER) if _TRIGGER in operations else None
    return DependencyOrder(
        loads=_loads(operations),
        loads_before_wait=None if wait is None else _loads(operations[:wait]),
        loads_after_trigger=None if trigger is None else _loads(operations[trigger:]),
    )


def _loads(operations: Sequence[str]) -> int:
    return sum(operation in _LOADS for operation in operations)
