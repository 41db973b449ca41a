"""Replies that fit a model's context: a stage's document cut to what decides the next step."""
