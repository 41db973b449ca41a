"""What a candidate comes to: compiled, checked, and timed or estimated."""
