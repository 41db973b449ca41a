"""`--as cuda`: C++ sources with a header, build files, and a small program that calls them."""

from .routes import Route
from .signature import Signature
from .subject import nvcc_flags
from .template_files import filled


def cuda_files(signature: Signature, routes: tuple[Route, ...]) -> dict[str, str]:
    """Return the files of this form beside the sources and the test."""
    name = signature.subject.name
    number = signature.subject.arch.removeprefix("sm_")
    flags = nvcc_flags(signature.subject)
    sources = [f"{name}.cu", *(f"{name}_{route.tag}.cu" for route in routes)]
    words = {
        "NAME": name,
        "ARCH_NUMBER": number,
        "CUDA_SOURCES": " ".join(sources),
        "FLAGS": " ".join(flags),
        "CMAKE_FLAGS": " ".join(f for f in flags if not f.startswith(("-std", "-O"))),
        "CMAKE_SOURCES": " ".join(f"src/{source}" for source in sources),
    }
    return {
        "Makefile": filled("Makefile", words),
        "CMakeLists.txt": filled("CMakeLists.txt", words),
        "test/run_case.cpp": filled("run_case.cpp", words | _program_words(signature)),
        "test/call.py": filled("call_cuda.py", words | _call_words(signature)),
    }


def _program_words(signature: Signature) -> dict[str, str]:
    """Return the generated parts of the test program."""
    tensors = signature.subject.problem.tensors
    axes = "".join(
        f"  params.{axis} = std::atoll(argv[{place}]);\n"
        for place, axis in enumerate(signature.axes, 2)
    )
    buffers = "".join(
        f'  Buffer {tensor.name}(folder, "{tensor.name}");\n'
        f"  params.{tensor.name} = {tensor.name}.device;\n"
        for tensor in tensors
    )
    scratch = "  CHECK(cudaMalloc(&params.scratch, scratch_bytes(params)));\n"
    return {
        "AXES": axes,
        "AXIS_NAMES": " ".join(signature.axes),
        "AXIS_COUNT": str(len(signature.axes) + 2),
        "BUFFERS": buffers,
        "SCRATCH": scratch if signature.has_scratch else "",
        "SAVES": "".join(f"  {tensor.name}.save();\n" for tensor in tensors),
    }


def _call_words(signature: Signature) -> dict[str, str]:
    return {"AXIS_TUPLE": repr(signature.axes)}
