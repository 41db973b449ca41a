"""A device of another machine over SSH, from the caller's side: address, connection, protocol."""
