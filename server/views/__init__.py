"""Records as text for people. A view reads a record and computes nothing of its own."""
