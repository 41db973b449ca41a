"""Several Python files of a task as one: each is a text in it, and found when it is imported."""

import json
from collections.abc import Mapping

_FINDER = '''# Written by kopt import from the files of a task.
import importlib.util as _util
import json as _json
import sys as _sys

import torch as _torch

_TEXTS = _json.loads({texts})


class _Finder:
    """Finds the task's own files."""

    def find_spec(self, name, path=None, target=None):
        return _util.spec_from_loader(name, self) if name in _TEXTS else None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        name = module.__name__
        exec(compile(_TEXTS[name], name + ".py", "exec"), module.__dict__)


for _name in _TEXTS:
    _sys.modules.pop(_name, None)
_sys.meta_path.insert(0, _Finder())
import {entry} as _task

_sys.meta_path.pop(0)
'''


def one_file(texts: Mapping[str, str], entry: str) -> str:
    """Return Python that imports `entry` as `_task` from `texts`, by module name.

    Their numbers stand in a text, so that none is taken for a size that could be smaller.
    """
    return _FINDER.format(texts=json.dumps(json.dumps(texts)), entry=entry)
