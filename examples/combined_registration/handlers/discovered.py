"""What discovery finds. The resource is never served: one of the same URI is registered by hand."""

from mcprelay import resource, tool


@tool
def discovered_status_check() -> str:
    """A tool discovered via attributes."""
    return "System status: OK (discovered)"


@resource("config://priority", name="priority_config_discovered")
def priority() -> str:
    """A resource discovered via attributes, which is overridden."""
    return "Discovered Priority Config: LOW"
