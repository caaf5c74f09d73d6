"""A calculator whose elements are found: marked in a file of their own, registered nowhere.

Serve it to a client that starts it:   python examples/discovery_calculator/server.py
"""

from mcprelay import Server

server = Server("Stdio Calculator", version="1.1.0")
server.discover("handlers")

if __name__ == "__main__":
    server.run()
