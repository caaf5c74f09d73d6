"""The wire: bytes to messages and back. Nothing here does I/O, knows a revision, or knows whether it is client or server."""
