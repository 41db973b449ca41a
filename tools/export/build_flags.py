"""What the device code is compiled with: the same as in kopt's own builds, without its reports."""

from .subject import Subject


def nvcc_flags(subject: Subject) -> tuple[str, ...]:
    """Return the flags of nvcc, the target left out."""
    header = subject.header
    flags = ["-std=c++17", "-O3", "--expt-relaxed-constexpr"]
    if header.fast_math:
        flags.append("--use_fast_math")
    if header.max_registers is not None:
        flags.append(f"-maxrregcount={header.max_registers}")
    return tuple(flags)


def gencode(subject: Subject) -> str:
    """Return the flag that names the target."""
    number = subject.arch.removeprefix("sm_")
    return f"-gencode=arch=compute_{number},code=sm_{number}"
