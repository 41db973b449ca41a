"""The agents that think for a search: planner, coder, fixer, reflector, combiner."""
