"""What a cubin may not contain, decided before any launch.

The screen fails closed. A kernel must be a function of its arguments that ends by itself: state
that outlives a launch, calls out of the module and reads of the wall clock are refused. Traps
(which cooperative groups' grid barrier contains), assertions, sleeps, reads of the SM's cycle
counter, prefetches and cache policies that keep lines are only flagged. This is not a proof of
good behavior: what a kernel does with its arguments is for the check stage.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kopt.kernels.record import Diagnostic

from .module_tables import AddressBank, may_name_library
from .sass import SassFunction, ScreenClass

if TYPE_CHECKING:
    from .cubin import CubinFacts

NOT_INSPECTED = (
    "instructions not inspected: nvdisasm is not installed (pip install 'kopt-mcp[toolkit]')"
)

_ASSERTION = "__assertfail"  # of the driver; it prints on stderr and ends the kernel with an error

_REFUSED: Mapping[ScreenClass, tuple[str, str]] = {
    "module_state": (
        "writes variables of module scope, or may: they keep their value between launches",
        "keep such values in tensors or declared scratch; tables that are only read may be "
        "constexpr or __constant__",
    ),
    "constant_address": (
        "takes the address of a constant variable, through which it could be written",
        "read constant variables by name and index; a pointer to one is not needed",
    ),
    "wall_clock": ("reads the global timer", "kopt measures time; remove the reads"),
}


ASSERTS = "contains assertions: a launch that fails one crashes"
_FLAGGED: Mapping[ScreenClass, str] = {
    "sleep": "contains a sleep",
    "stop": "contains a trap or breakpoint: a launch that reaches it crashes",
    "clock": "reads the cycle counter",
    "cache_policy": "asks the caches to keep some lines longer than others: a time may depend on "
    "what earlier calls left there",
    "prefetch": "fetches data into a cache ahead of its use",
    "early_prefetch": "fetches data into a cache before it waits for the launch before it: sound "
    "for weights, but inputs that another kernel has only just written lie cold in this benchmark "
    "alone",
}


def trap_flag(kernel: str) -> str:
    """Return what is said of a kernel that contains a trap."""
    return f"kernel {kernel} {_FLAGGED['stop']}"


def address_bank(facts: "CubinFacts", source: str) -> AddressBank:
    """Return what of a module's addresses its kernels cannot use to keep state."""
    return AddressBank(
        library=frozenset() if may_name_library(source) else facts.library_slots,
        asserts=facts.undefined_functions == (_ASSERTION,) and not facts.takes_functions,
    )


@dataclass(frozen=True)
class Screening:
    """The outcome of a screen."""

    refused: tuple[Diagnostic, ...]
    flagged: tuple[str, ...]


def screen_cubin(facts: "CubinFacts", functions: Sequence[SassFunction] | None) -> Screening:
    """Return what is wrong with a cubin, from its ELF and its instructions.

    Without instructions (None) the ELF alone decides: a module with addresses of module-scope
    objects is refused, used or not, and the result says that instructions were not inspected.
    """
    refused = [
        Diagnostic(
            message=f"the module calls {name}, which is defined nowhere in it",
            hint="no printf, no device-side launch or allocation, no external functions",
        )
        for name in facts.undefined_functions
        if name != _ASSERTION
    ]
    refused += [
        _refusal(f"the module stores the address of {name}: it", "module_state")
        for name in facts.stored_addresses
    ]
    if functions is None:
        if facts.has_address_bank:
            refused.append(_refusal("the module", "module_state"))
        return Screening(tuple(refused), (NOT_INSPECTED,))
    flagged: list[str] = []
    if _ASSERTION in facts.undefined_functions:
        flagged.append(ASSERTS)
    for function in functions:
        for found in sorted(function.screened):
            if found in _REFUSED:
                refused.append(_refusal(f"kernel {function.name}", found))
            else:
                flagged.append(f"kernel {function.name} {_FLAGGED[found]}")
    return Screening(tuple(refused), tuple(flagged))


def _refusal(subject: str, found: ScreenClass) -> Diagnostic:
    reason, hint = _REFUSED[found]
    return Diagnostic(message=f"{subject} {reason}", hint=hint)
