"""Inline PTX of candidates as C++ that a CPU runs: found, parsed and written anew."""
