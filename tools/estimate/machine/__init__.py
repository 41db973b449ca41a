"""The time of a launch from its machine code: followed warp by warp, then timed on one SM."""
