"""Long work as durable records: queued, run in child processes, resumed by the next server."""
