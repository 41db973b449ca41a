"""Which chunks answer a query: its words, their weights, lists fused by rank."""
