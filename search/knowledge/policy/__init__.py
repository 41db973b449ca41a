"""Expected gains of techniques and the choice of the next ones, from a knowledge base alone."""
