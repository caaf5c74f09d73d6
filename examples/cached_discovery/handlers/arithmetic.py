"""Marked functions."""

from mcprelay import ToolError, tool


@tool
def add_numbers(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@tool
def multiply_numbers(a: int, b: int) -> int:
    """Multiplies two numbers."""
    return a * b


@tool
def divide_numbers(a: int, b: int) -> float:
    """Divides two numbers."""
    if b == 0:
        raise ToolError("Division by zero is not allowed")
    return a / b


@tool
def power(base: int, exponent: int) -> float:
    """Raises a number to a power."""
    try:
        return float(base) ** exponent
    except ArithmeticError as error:
        raise ToolError(f"{base} to the power of {exponent} is no number: {error}") from None
