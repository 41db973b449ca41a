"""One sentence a status: what the candidate's author does next. docs/statuses.md says more."""

from kopt.kernels.status import Status

ADVICE = {
    Status.PASSED: "Nothing: every gate of the level that was asked for is met.",
    Status.PLAN_ERROR: "Mend the header comment, or the kernel that it launches: the line above "
    "says what does not fit and what is allowed (docs/candidates.md).",
    Status.COMPILE_ERROR: "Mend the first error; the rest often follow from it.",
    Status.REFUSED: "Remove the construct that is named: it is not allowed in a candidate.",
    Status.INCORRECT: "Start from the first mismatch: its row, column and pattern point at the "
    "code that wrote it.",
    Status.UNWRITTEN_OUTPUT: "Write every element of the output: look at the tail and at early "
    "returns.",
    Status.INPUT_MUTATED: "Do not write to tensors of role `in`; use a scratch buffer.",
    Status.OUT_OF_BOUNDS: "Guard the index at the line above; mind the last row and the last "
    "vector.",
    Status.MISALIGNED: "Align the address to the width of the access, or use a narrower one.",
    Status.UNINITIALIZED_READ: "Write the memory before it is read: scratch and shared memory "
    "start undefined.",
    Status.DATA_RACE: "Within a block, put a barrier or an atomic between the two accesses that "
    "are named; between blocks, let each write elements of its own.",
    Status.BARRIER_DIVERGENCE: "Let every thread of the block reach the same barrier: move it out "
    "of the branch.",
    Status.LAUNCH_ERROR: "Change grid, block, cluster or shared memory to what the device allows.",
    Status.CRASH: "Look for wild pointers and endless recursion: the process ended by a signal.",
    Status.TIMEOUT: "Look for loops that never end, or for far more work than the problem needs.",
    Status.REWARD_HACK: "Compute the result: the candidate gains by misleading the harness.",
    Status.UNSUPPORTED_ON_SIM: "Use the wrapper of <kopt/...> for this instruction, or check on a "
    "GPU: the kernel may be right.",
    Status.QUARANTINED: "Do not resubmit it: it brought down its worker more than once.",
}
