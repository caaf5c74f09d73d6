"""A server that talks back while it works: messages, progress, the client's model, the client's folders.

Serve it to a client that starts it:   python examples/client_communication.py
"""

from typing import Annotated, Any

from mcprelay import Context, Schema, Server, ToolError

server = Server("Client Communication", version="1.0.0")


@server.tool
async def inspect_workspace_roots(ctx: Context) -> dict[str, Any]:
    """Lists the folders that the client lets the server work in."""
    if ctx.client_capabilities.roots is None:
        return {"supported": False, "count": 0, "roots": []}
    roots = await ctx.roots()
    return {"supported": True, "count": len(roots), "roots": [{"uri": root.uri, "name": root.name} for root in roots]}


@server.tool
async def coordinate_incident_response(
    ctx: Context, incident_title: Annotated[str, Schema(alias="incidentTitle")]
) -> dict[str, Any]:
    """Coordinates an incident response, with a plan from the client's model.

    Args:
        incident_title: what happened
    """
    if ctx.client_capabilities.sampling is None:
        raise ToolError("This client lends no model: a plan needs one.")
    ctx.warning(f"Incident triage started: {incident_title}")
    steps = ["Collecting telemetry", "Assessing scope", "Coordinating responders"]
    for done, step in enumerate(steps, 1):
        ctx.progress(done / len(steps), 1, step)
    plan = await ctx.sample(
        f'Provide a concise response strategy for incident "{incident_title}" based on: {", ".join(steps)}.',
        max_tokens=350,
    )
    ctx.info(f"Incident triage completed: {incident_title}")
    return {"incident": incident_title, "recommended_actions": plan.text, "model": plan.model}


@server.tool
async def run_dataset_quality_checks(ctx: Context, dataset: str) -> dict[str, Any]:
    """Checks a data set, and says how far it is.

    Args:
        dataset: the name of the data set
    """
    ctx.info(f"Running quality checks on {dataset}")
    checks = ["Validating schema", "Scanning for anomalies", "Reviewing statistical summary"]
    for done, check in enumerate(checks, 1):
        ctx.progress(done / len(checks), 1, check)
    ctx.info(f"Dataset {dataset} passed automated checks.")
    return {"dataset": dataset, "status": "passed", "notes": "No significant integrity issues detected."}


if __name__ == "__main__":
    server.run()
