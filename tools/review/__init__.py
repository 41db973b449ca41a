"""Reviews of claims: full check, sanitizer and timing of a kernel that is said to be fast."""
