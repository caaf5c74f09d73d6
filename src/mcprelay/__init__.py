"""mcprelay: serve Python to any MCP client, call any MCP server, relay servers you do not own across a trust boundary.

Importing the package loads nothing; each public name loads its module on first use (PEP 562).
"""
