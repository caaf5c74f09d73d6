"""The wire: bytes to messages and back. Nothing here does I/O, knows a revision, or which side it is on."""
