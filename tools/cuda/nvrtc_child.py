"""The process that holds NVRTC: started once, it forks for every compile.

Standard library only, run by path (`python -I -S`), never imported by kopt. Loading NVRTC costs
more than a fork, and NVRTC itself has neither a time limit nor a way to stop: a compile that runs
too long is ended by its own alarm, and takes nothing with it.

Protocol: `argv` is the path of libnvrtc; each line read from the FIFO `requests` names a folder
with `candidate.cu` and `options.json`. The fork opens the folder's FIFO `done`, writes
`compiler.log` and `candidate.cubin`, then one status line into `done`; its death closes `done`
without one. The process ends when nobody holds the other end of `requests`.
"""

import ctypes
import json
import os
import signal
import sys
from typing import Any

SUCCESS = 0


def main() -> None:
    """Serve requests until the other end is closed."""
    nvrtc = ctypes.CDLL(sys.argv[1])
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # forks are reaped by the kernel
    with open("requests", encoding="utf-8") as requests:
        while line := requests.readline():
            if os.fork() == 0:
                serve(nvrtc, line.rstrip("\n"))
                os._exit(0)


def serve(nvrtc: ctypes.CDLL, folder: str) -> None:
    """Compile what lies in `folder` and report into its FIFO."""
    os.chdir(folder)
    with open("done", "w", encoding="utf-8") as done:
        with open("options.json", encoding="utf-8") as file:
            request: dict[str, Any] = json.load(file)
        signal.setitimer(signal.ITIMER_REAL, request["wall_s"])
        with open("candidate.cu", "rb") as file:
            source = file.read()
        status = compile_program(nvrtc, source, request["options"])
        done.write(f"{status}\n")


def compile_program(nvrtc: ctypes.CDLL, source: bytes, options: list[str]) -> int:
    """Write the log and, if NVRTC succeeds, the cubin; return NVRTC's status."""
    program = ctypes.c_void_p()
    status = nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"candidate.cu", 0, None, None)
    if status != SUCCESS:
        return int(status)
    encoded = [option.encode() for option in options]
    arguments = (ctypes.c_char_p * len(encoded))(*encoded)
    status = nvrtc.nvrtcCompileProgram(program, len(encoded), arguments)
    log = output(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
    with open("compiler.log", "wb") as file:
        file.write(log.rstrip(b"\0"))
    if status == SUCCESS:
        cubin = output(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program)
        with open("candidate.cubin", "wb") as file:
            file.write(cubin)
    return int(status)


def output(get_size: Any, get: Any, program: ctypes.c_void_p) -> bytes:
    """Return what a pair of NVRTC functions (size, content) gives."""
    size = ctypes.c_size_t()
    get_size(program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(size.value)
    get(program, buffer)
    return buffer.raw


if __name__ == "__main__":
    main()
