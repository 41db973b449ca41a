"""Replies of tools: what a stage found, cut to what decides the next step; the rest is in files."""
