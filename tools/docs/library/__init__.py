"""Production code that is searched beside kopt's own: obtained, checked and read, never run."""
