"""The benchmark: candidate against baseline in randomised pairs, with a verdict."""
