"""Pinecone as one more list of hits: asked with every search, filled by `kopt docs push`."""
