"""The parts of names and the comments of C++, as several modules take them apart."""

import re

NAME_PART = re.compile(r"[A-Z][A-Z0-9]*(?=[A-Z][a-z])|[A-Z]?[a-z0-9]+|[A-Z0-9]+")
"""`WarpReduceSum_fp16` has Warp, Reduce, Sum, fp16, and `NVFP4Quantize` NVFP4 and Quantize: digits
stay with the letters before them."""
CPP_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
"""One without an end reaches to that of the text."""
CPP_IDLE = re.compile(rf"{CPP_COMMENT.pattern}|\s+", re.DOTALL)
"""What says nothing to a compiler."""
