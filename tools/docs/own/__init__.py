"""Kopt's own documents: read, cut into chunks, indexed."""
