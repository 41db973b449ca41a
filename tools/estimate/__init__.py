"""The time of a candidate without a GPU, from its plan and its machine code."""
