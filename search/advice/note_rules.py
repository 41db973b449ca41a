"""Which notes of kopt's documents fit a program: rules over what compile and profile counted.

A rule holds for what can be seen in the code that runs, so that it is silent once its note was
followed. It says why in numbers, which are computed; what a change gains only a try can tell.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod

from kopt.config.counted import counted
from kopt.config.gpu_specs import GpuSpec
from kopt.kernels.compile_result import DependencyOrder
from kopt.kernels.profile_result import LaunchProfile, ProfileResult
from kopt.kernels.source_lexer import logical_lines

SHORT_CALL_US = 10.0
"""Up to this an earlier start counts: a plain launch of an empty kernel, 0.79 to 0.96 us on an H100
(docs/measurement.md, docs/benchmarks.md, measured), is then some tenth of the call."""
FEW_PARTIALS_BYTES = 1024
"""Static shared memory up to which it holds partial sums of 32 warps and no tile."""
SERIAL_PARTIALS = 4
"""Loads from shared memory from which partial sums are read one after another, not as a word."""
FEW_BLOCKS = 0.5
"""Blocks / SMs below which most of the GPU is idle."""
CROWDED = 0.25
"""Share of the GPU's room for blocks from which early blocks of the next launch may be in the way:
on an H100 norms that take 48 % gained 2 to 19 % by a late trigger, and nothing surely gained at 3 %
or 11 % (measured, docs/results.md)."""
WARP = 32

_WIDENING = frozenset(
    {"__bfloat1622float2", "__bfloat162float", "__low2float", "__high2float", "__bfloat162float2"}
)


@dataclass(frozen=True)
class ProfiledProgram:
    """One candidate that has passed, as the rules see it."""

    profile: ProfileResult
    source: str
    static: tuple[str, ...]
    """Names of the inputs that no launch before it writes."""
    gpu: GpuSpec

    @property
    def launch(self) -> LaunchProfile:
        """Its only launch: the rules are for kernels of one."""
        return self.profile.launches[0]

    @property
    def order(self) -> DependencyOrder | None:
        """Where its loads stand to its wait and its trigger."""
        return self.launch.resources.dependency_order

    @property
    def blocks(self) -> int:
        """Blocks of its grid."""
        return prod(self.launch.grid)

    @property
    def block_words(self) -> str:
        """Blocks of its grid, with their noun."""
        return counted(self.blocks, "block")

    @property
    def names(self) -> frozenset[str]:
        """The identifiers of its code, comments left out."""
        lines = logical_lines(self.source)
        tokens = (token for line in lines for token in line.tokens)
        return frozenset(token.text for token in tokens if token.kind == "identifier")

    def count(self, instruction: str) -> int:
        """Return how often a class of instructions stands in its code."""
        return self.launch.resources.instruction_mix.get(instruction, 0)

    @property
    def has_few_blocks(self) -> bool:
        """Whether they leave most of the GPU idle."""
        return self.blocks < FEW_BLOCKS * self.gpu.sm_count

    @property
    def has_wide_loads(self) -> bool:
        """Whether a lane loads 16 bytes at once; before that, instructions and hints are no use."""
        return self.count("ldg_128") + self.count("ldg_256") > 0

    def sms_idle(self) -> str:
        """Return in words how much of the GPU few blocks leave idle."""
        sms = self.gpu.sm_count
        return f"{self.block_words} leave {sms - self.blocks} of {sms} SMs idle"


@dataclass(frozen=True)
class NoteRule:
    """A note, and when it fits."""

    family: str
    """The file of the note, by its family."""
    heading: str
    why: Callable[[ProfiledProgram], str | None]
    """Why it fits, in a clause; None where it does not."""


def fitting(program: ProfiledProgram) -> Iterator[tuple[NoteRule, str]]:
    """Yield the notes that fit `program` and why, in the order of the rules."""
    if len(program.profile.launches) != 1:
        return
    for rule in RULES:
        why = rule.why(program)
        if why is not None:
            yield rule, why


def _no_early_start(program: ProfiledProgram) -> str | None:
    order, time_us = program.order, _time_us(program)
    if order is None or time_us is None or program.gpu.compute_capability < (9, 0):
        return None
    is_alone = order.loads_before_wait is None and order.loads_after_trigger is None
    if not is_alone or time_us > SHORT_CALL_US:
        return None
    return "a call is short, and its code neither waits for the launch before it nor triggers one"


def _static_after_wait(program: ProfiledProgram) -> str | None:
    order = program.order
    if order is None or order.loads_before_wait != 0 or not program.static or not order.loads:
        return None
    names = ", ".join(program.static)
    return f"none of its {order.loads} global loads stands before the wait, though {names} may"


def _early_trigger(program: ProfiledProgram) -> str | None:
    order, room = program.order, program.launch.occupancy.waves
    if order is None or room < CROWDED:
        return None
    if order.loads_after_trigger:
        late = f"{order.loads_after_trigger} of its {order.loads} global loads"
        filled = f"{min(room, 1.0):.0%} of the GPU's room for blocks"
        return f"{late} stand after the trigger, and its {program.block_words} take {filled}"
    if order.loads_before_wait is not None and order.loads_after_trigger is None:
        return (
            f"it waits and never triggers, so the next launch waits for all {program.block_words}"
        )
    return None


def _wide_blocks(program: ProfiledProgram) -> str | None:
    threads = prod(program.launch.block)
    if program.count("bar") or not program.has_few_blocks or threads <= WARP:
        return None
    return f"{program.sms_idle()}, and nothing joins the {threads} threads of a block"


def _serial_partials(program: ProfiledProgram) -> str | None:
    loads, shared = program.count("lds"), program.launch.resources.static_smem_bytes
    is_sum = program.count("bar") and program.count("shfl") and shared <= FEW_PARTIALS_BYTES
    if not is_sum or loads < SERIAL_PARTIALS:
        return None
    return f"it reads {shared} bytes of partial results by {loads} loads from shared memory"


def _widening(program: ProfiledProgram) -> str | None:
    if not program.has_wide_loads or not program.has_few_blocks:
        return None
    found = sorted(_WIDENING & program.names)
    if not found:
        return None
    return f"it widens by {', '.join(found)}; {program.sms_idle()}: each instruction counts"


def _stores(program: ProfiledProgram) -> str | None:
    total, l2 = program.profile.byte_model.total_bytes, program.gpu.l2_bytes
    streaming = program.launch.resources.streaming_stores
    if streaming is None or not program.has_wide_loads:
        return None
    is_streaming = streaming > 0
    if is_streaming == (total > l2):
        side = "do not fit" if is_streaming else "fit"
        kind = "streaming" if is_streaming else "ordinary"
        return f"its stores are {kind} and the {total:,} bytes of a call {side} in L2 ({l2:,})"
    return None


RULES = (
    NoteRule("pass_fusion", "Hide the launch between two kernels", _no_early_start),
    NoteRule("async_pipeline", "Prefetch across the dependency (sm_90 on)", _static_after_wait),
    NoteRule("pass_fusion", "Trigger after the loads", _early_trigger),
    NoteRule("grid_shape", "Many small blocks for few rows", _wide_blocks),
    NoteRule("reduction", "Partial sums as vectors", _serial_partials),
    NoteRule("packed_simd", "Widen bf16 by its bits", _widening),
    NoteRule("cache_policy", "Streaming stores by the size of a call", _stores),
)
"""What starts a call earlier first, then what spreads it over the GPU, then its instructions."""


def _time_us(program: ProfiledProgram) -> float | None:
    """Return the time of a call: measured, else estimated."""
    profile = program.profile
    if profile.measured is not None:
        return profile.measured.latency.median_us
    return None if profile.estimate is None else profile.estimate.latency_us
