"""What words of code and of questions mean: index terms, glossary, tags, synonyms."""
