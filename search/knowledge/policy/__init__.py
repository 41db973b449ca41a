"""What to expect of a technique and which to try next: computed from a knowledge base alone."""
