"""Stand-ins for the few host headers that device code names; NVRTC has none of its own.

They declare what NVRTC lacks (fixed-width integers) and are empty where it has the functions built
in. A candidate that needs more of a host header does not compile here and goes to nvcc.
"""

from pathlib import Path

from kopt.config.settings import Settings

from .include_tree import content_folder, digest_of

# The underlying types are glibc's for x86_64, so that a kernel means the same under nvcc.
_INTEGERS = """#pragma once
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;
typedef long intptr_t;
typedef unsigned long uintptr_t;
namespace std {
using ::int8_t; using ::int16_t; using ::int32_t; using ::int64_t;
using ::uint8_t; using ::uint16_t; using ::uint32_t; using ::uint64_t;
using ::intptr_t; using ::uintptr_t;
}
"""
_BUILT_IN = "#pragma once\n"

_HEADERS = {
    "cmath": _BUILT_IN,
    "cstddef": _BUILT_IN,
    "cstdint": _INTEGERS,
    "math.h": _BUILT_IN,
    "stddef.h": _BUILT_IN,
    "stdint.h": '#include "cstdint"\n',
}


def host_header_root(settings: Settings) -> Path:
    """Return the folder for NVRTC's -I that holds the stand-ins, made on first use."""
    headers = {name: text.encode() for name, text in _HEADERS.items()}
    return content_folder(settings, digest_of(headers), headers)
