"""What a client says in the `env` of its configuration changes what the tool does.

Serve it to a client that starts it:   APP_MODE=debug python examples/env_variables.py
"""

import os
from typing import Any

from mcprelay import Server

server = Server("Env Var Server", version="1.0.0")

RESULT = {
    "type": "object",
    "properties": {
        "mode": {"type": "string", "description": "The processing mode used"},
        "processed_input": {"type": "string", "description": "The processed input data"},
        "original_input": {"type": "string", "description": "The original input data (only in default mode)"},
        "message": {"type": "string", "description": "A descriptive message about the processing"},
    },
    "required": ["mode", "message"],
}


@server.tool(output_schema=RESULT)
def process_data_by_mode(input: str) -> dict[str, Any]:
    """Performs an action that can be modified by an environment variable.

    The MCP client should set 'APP_MODE' in its 'env' config for this server.

    Args:
        input: some input data
    """
    match os.environ.get("APP_MODE"):
        case "debug":
            return {"mode": "debug", "processed_input": input.upper(), "message": "Processed in DEBUG mode."}
        case "production":
            return {
                "mode": "production",
                "processed_input_length": len(input),
                "message": "Processed in PRODUCTION mode (summary only).",
            }
    return {
        "mode": "default",
        "original_input": input,
        "message": "Processed in default mode (APP_MODE not recognized or not set).",
    }


if __name__ == "__main__":
    server.run()
