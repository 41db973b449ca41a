"""Searching: a request checked, its words, lists fused to a ranking, hits quoted in a budget."""
