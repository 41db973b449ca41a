"""What to try next: proposers, the beam loop and the run store."""
