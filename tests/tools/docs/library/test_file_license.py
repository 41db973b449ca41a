"""The licence of a file by its head, as production libraries write it."""

from pathlib import Path

import pytest

from kopt.tools.docs import sources
from kopt.tools.docs.chunking.library_chunks import CHUNKER_CODE
from kopt.tools.docs.code_version import code_files
from kopt.tools.docs.library.pins import known_libraries
from kopt.tools.docs.sources import PROPRIETARY, license_of, may_be_handed_on
from support.chunked_files import chunk_of, library_file

OF_THE_LIBRARY = "MIT"
AGREEMENT = """\
/*
 * Copyright (c) 2011-2024, NVIDIA CORPORATION.  All rights reserved.
 *{spdx}
 * Any use, reproduction, disclosure or distribution of this software and related documentation
 * without an express license agreement from NVIDIA CORPORATION or its affiliates is strictly
 * prohibited.
 */
"""
TITLE = "\n * SPDX-License-Identifier: NVIDIA TensorRT Source Code License Agreement\n *"
KERNEL = "\n__global__ void scale(float* x) {\n  x[threadIdx.x] *= 2.f;\n  x[0] += 1.f;\n}\n"


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("// A kernel that scales.\n", OF_THE_LIBRARY),
        ("// Copyright (c) 2025 by the team. All rights reserved.\n", OF_THE_LIBRARY),
        ("// SPDX-License-Identifier: Apache-2.0\n", "Apache-2.0"),
        ("# SPDX-License-Identifier: BSD-3-Clause  \r\n", "BSD-3-Clause"),
        ("/* SPDX-License-Identifier: BSD-2-Clause */\n", "BSD-2-Clause"),
        ('"""SPDX-License-Identifier: Zlib"""\n', "Zlib"),
        ("// SPDX-License-Identifier: (MIT OR Apache-2.0)\n", "(MIT OR Apache-2.0)"),
        (
            "// SPDX-License-Identifier: BSD-3-Clause OR MIT\n// Parts:\n"
            "// SPDX-License-Identifier: Apache-2.0\n// SPDX-License-Identifier: Apache-2.0\n",
            "(BSD-3-Clause OR MIT) AND Apache-2.0",
        ),
        (
            AGREEMENT.format(spdx="\n * SPDX-License-Identifier: LicenseRef-NvidiaProprietary\n *"),
            "LicenseRef-NvidiaProprietary",
        ),
        (AGREEMENT.format(spdx=""), PROPRIETARY),
        (AGREEMENT.format(spdx=TITLE), PROPRIETARY),
        ("// SPDX-License-Identifier: Agreement of the Acme Company\n", None),
        ("{{ copyright }}\n", None),
        ("// line\n" * 39 + "// SPDX-License-Identifier: Zlib\n", "Zlib"),
        ("// line\n" * 40 + "// SPDX-License-Identifier: Zlib\n", OF_THE_LIBRARY),
    ],
)
def test_what_the_head_says_is_the_licence(head: str, expected: str | None) -> None:
    assert license_of(library_file("csrc/a.cu", head + KERNEL)) == expected
    assert chunk_of("scale", head + KERNEL).license == expected


def test_only_a_public_licence_lets_a_file_be_handed_on() -> None:
    may = {key: may_be_handed_on(library.license) for key, library in known_libraries().items()}
    assert [key for key, is_open in may.items() if not is_open] == ["cuda"]
    assert may_be_handed_on("MIT AND Apache-2.0")
    assert not may_be_handed_on("Apache-2.0 AND LicenseRef-NvidiaProprietary")
    assert not may_be_handed_on(None)


def test_files_are_read_anew_when_the_rules_of_licences_change() -> None:
    assert Path(sources.__file__).resolve() in [
        path.resolve() for path in code_files(*CHUNKER_CODE)
    ]
