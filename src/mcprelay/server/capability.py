"""What a server declares: as it was told, or as what is registered makes it.

What was declared once stays declared: a client that saw the tools capability may ask for the list, though it is empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from mcprelay.revisions import Feature
from mcprelay.types import ServerCapabilities

if TYPE_CHECKING:
    from mcprelay.revisions import Revision
    from mcprelay.server.catalog import Catalog


class Capabilities:
    """The capabilities of one server.

    Args:
        catalog: What is registered.
        given: What is declared, whatever is registered.
    """

    def __init__(self, catalog: Catalog, given: ServerCapabilities | None = None) -> None:
        self._catalog = catalog
        self._given = given
        self.current = given
        """What is declared, unless it has to be derived anew: see `now`."""
        self._tools = self._prompts = self._resources = self._templates = False

    @property
    def now(self) -> ServerCapabilities:
        """What is declared at the moment."""
        if self.current is None:
            self.current = self._derive()
        return self.current

    def _derive(self) -> ServerCapabilities:
        catalog = self._catalog
        self._tools |= bool(catalog.tools.keys)
        self._prompts |= bool(catalog.prompts.keys)
        self._resources |= bool(catalog.resources.keys)
        self._templates |= bool(catalog.templates.keys)
        resources = self._resources or self._templates
        return ServerCapabilities(
            tools={"listChanged": True} if self._tools else None,
            resources={"subscribe": True, "listChanged": True} if resources else None,
            prompts={"listChanged": True} if self._prompts else None,
            completions={} if self._prompts or self._templates else None,
            logging={},
        )

    def changed(self) -> None:
        """What is registered changed."""
        self.current = self._given

    def shaped(self, revision: Revision) -> ServerCapabilities:
        """What is declared, as a revision has it."""
        declared = self.now
        return declared if revision.has(Feature.COMPLETIONS_CAPABILITY) else replace(declared, completions=None)
