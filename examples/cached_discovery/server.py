"""Discovery with a cache: the second start imports nothing that has not changed, until it is called.

Serve it to a client that starts it:   python examples/cached_discovery/server.py
"""

from pathlib import Path

from mcprelay import Server

server = Server("Cached Discovery Calculator", version="1.0.0")
server.discover("handlers", cache=Path(__file__).with_name(".discovery.json"))

if __name__ == "__main__":
    server.run()
