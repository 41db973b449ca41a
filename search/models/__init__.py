"""Asking a language model: the protocol, Claude behind it, its price, its pace and its record."""
