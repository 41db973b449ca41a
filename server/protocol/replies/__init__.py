"""Replies of tools: what a stage found, cut to what decides the next step, and where the rest is."""
