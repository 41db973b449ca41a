"""compute-sanitizer over one candidate: memory, initialization, races, barriers."""
