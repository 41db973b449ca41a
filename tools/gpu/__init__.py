"""The `cuda:N` device: a sandboxed worker process per (GPU, problem), and what talks to it."""
