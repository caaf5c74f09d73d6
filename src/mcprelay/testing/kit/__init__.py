"""Conformance kits: each holds an implementation of one port against what `mcprelay.ports` promises of it."""
