"""A class with marks on its methods. Its one instance is made on first use, so what is set is seen by the next call."""

from typing import Annotated, Any

from mcprelay import Icon, Schema, resource, tool

ICON = Icon(src="https://www.svgrepo.com/show/530644/calculator.svg", mime_type="image/svg+xml", sizes=("any",))


class Calculator:
    def __init__(self):
        self.precision = 2
        self.allow_negative = True

    @tool(icons=[ICON])
    def calculate(self, a: float, b: float, operation: str) -> float | str:
        """Performs a calculation based on the operation.

        Supports 'add', 'subtract', 'multiply', 'divide'.
        Obeys the 'precision' and 'allow_negative' settings from the config resource.

        Args:
            a: the first operand
            b: the second operand
            operation: the operation ('add', 'subtract', 'multiply', 'divide')
        """
        match operation:
            case "add":
                result = a + b
            case "subtract":
                result = a - b
            case "multiply":
                result = a * b
            case "divide" if b == 0:
                return "Error: Division by zero."
            case "divide":
                result = a / b
            case _:
                return f"Error: Unknown operation '{operation}'. Supported: add, subtract, multiply, divide."
        if result < 0 and not self.allow_negative:
            return "Error: Negative results are disabled."
        return round(result, self.precision)

    @tool
    def update_setting(
        self,
        setting: str,
        value: Annotated[Any, Schema("the new value (int for precision, bool for allow_negative)")],
    ) -> dict[str, Any]:
        """Updates a specific configuration setting.

        Note: This requires more robust validation in a real app.

        Args:
            setting: the setting key ('precision' or 'allow_negative')
        """
        match setting, value:
            case "precision", int() if not isinstance(value, bool) and 0 <= value <= 10:
                self.precision = value
                return {"success": True, "message": f"Precision updated to {value}."}
            case "precision", _:
                return {"success": False, "error": "Invalid precision value. Must be integer between 0 and 10."}
            case "allow_negative", bool():
                self.allow_negative = value
                return {"success": True, "message": f"Allow negative results set to {str(value).lower()}."}
            case "allow_negative", _:
                return {"success": False, "error": "Invalid allow_negative value. Must be boolean (true/false)."}
        return {"success": False, "error": f"Unknown setting '{setting}'."}

    @resource("config://calculator/settings", name="calculator_config", mime_type="application/json")
    def settings(self) -> dict[str, Any]:
        """Current settings for the calculator (precision, allow_negative)."""
        return {"precision": self.precision, "allow_negative": self.allow_negative}
