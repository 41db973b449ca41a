"""Forecast of a run's rounds and cost, computed from settings, prompts and prices."""
