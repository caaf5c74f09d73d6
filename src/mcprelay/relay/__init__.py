"""Servers that are not ours in front of a model, across a boundary that the application can see."""
