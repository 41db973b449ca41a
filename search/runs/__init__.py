"""Runs begun, taken up again and driven with the parts of this machine."""
