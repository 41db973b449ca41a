"""Names of a problem that generated code cannot take over: words of C++ and Python, and its own."""

import keyword

from kopt.config.errors import ToolError

from .subject import Subject

_CPP_WORDS = """
alignas alignof and asm auto bool break case catch char class const constexpr continue decltype
default delete do double else enum explicit export extern false float for friend goto if inline int
long mutable namespace new noexcept not nullptr operator or private protected public register return
short signed sizeof static struct switch template this throw true try typedef typename union
unsigned using virtual void volatile while xor
"""
_OWN_WORDS = """
params stream error place launch run device device_of guard reason scratch torch tvm
"""
_RESERVED = frozenset((*_CPP_WORDS.split(), *_OWN_WORDS.split(), *keyword.kwlist))


def refuse_reserved_names(subject: Subject) -> None:
    """Refuse tensors, scalars and scratch buffers that generated code could not name.

    Raises:
        ToolError: One is called like a keyword, or like a variable of the generated code.
    """
    problem = subject.problem
    names = [tensor.name for tensor in problem.tensors]
    names += [scalar.name for scalar in problem.scalars]
    names += [buffer.name for buffer in subject.header.scratch]
    for name in names:
        if name in _RESERVED:
            raise ToolError(
                f"{name!r} of {problem.name} is a word of the generated code: it cannot be exported"
                " under that name"
            )
