"""Coding agents on this machine as models: each turn is one headless process, without tools."""
