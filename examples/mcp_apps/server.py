"""A tool with a face: hosts that know MCP Apps show `ui://weather-app` beside what `get_weather` says.

Serve it to a client that starts it:       python examples/mcp_apps/server.py
Serve it at http://127.0.0.1:8080/mcp:     python examples/mcp_apps/server.py --http
"""

import os
import sys
from pathlib import Path

from mcprelay import ResourceContents, Server
from mcprelay.types import ServerCapabilities

PAGE = Path(__file__).with_name("weather.html")
APP = "ui://weather-app"
MIME_TYPE = "text/html;profile=mcp-app"

WEATHER = {
    "london": ("15°C", "Cloudy", "78%"),
    "paris": ("18°C", "Sunny", "55%"),
    "tokyo": ("22°C", "Partly Cloudy", "65%"),
}

server = Server(
    "MCP Apps Weather Example",
    version="1.0.0",
    capabilities=ServerCapabilities(
        tools={}, resources={}, extensions={"io.modelcontextprotocol/ui": {"mimeTypes": [MIME_TYPE]}}
    ),
)


@server.resource(APP, name="weather-app", mime_type=MIME_TYPE, meta={"ui": {}})
def weather_app() -> ResourceContents:
    """Interactive weather dashboard"""
    ui = {
        "csp": {"connectDomains": ["https://api.weather.example.com"]},
        "permissions": {"geolocation": {}},
        "prefersBorder": True,
    }
    return ResourceContents(uri=APP, mime_type=MIME_TYPE, text=PAGE.read_text(encoding="utf-8"), meta={"ui": ui})


@server.tool(meta={"ui": {"resourceUri": APP, "visibility": ["model", "app"]}})
def get_weather(city: str) -> str:
    """Get current weather for a city"""
    temperature, condition, humidity = WEATHER.get(city.lower(), ("20°C", "Clear", "50%"))
    return f"Weather in {city}: {temperature}, {condition}, Humidity: {humidity}"


if __name__ == "__main__":
    if "--http" in sys.argv:
        server.run("http", port=int(os.environ.get("PORT", "8080")))
    else:
        server.run()
