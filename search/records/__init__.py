"""The records that all of the search shares: budgets, candidates, evaluations, a run's state."""
