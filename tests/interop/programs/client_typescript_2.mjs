// The client of the official TypeScript SDK 2, told what to talk to: TRANSPORT TARGET [MODE]. Prints what it got as JSON.

import { Client, SSEClientTransport, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { answers, changes, logs, until, visit } from "./typescript_visit.mjs";

const [transport, target, mode = "auto"] = process.argv.slice(2);

function wire() {
  if (transport === "http") return new StreamableHTTPClientTransport(new URL(target));
  if (transport === "sse") return new SSEClientTransport(new URL(target));
  const [command, ...args] = JSON.parse(target);
  return new StdioClientTransport({ command, args });
}

const client = new Client(
  { name: "visitor", version: "1" },
  {
    capabilities: { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} },
    versionNegotiation: { mode },
  },
);
client.setRequestHandler("elicitation/create", answers.elicit);
client.setRequestHandler("sampling/createMessage", answers.sample);
client.setRequestHandler("roots/list", answers.roots);
client.setNotificationHandler("notifications/message", (one) => logs.push(one.params.level));
client.setNotificationHandler("notifications/tools/list_changed", () => changes.push("tools"));

await client.connect(wire());
const modern = client.getProtocolEra() === "modern";
if (!modern) await client.setLoggingLevel("warning");
const meta = modern ? { _meta: { "io.modelcontextprotocol/logLevel": "warning" } } : {};
const call = (name, args, options) => client.callTool({ name, arguments: args, ...meta }, options);
const changed = async () => {
  const subscription = modern ? await client.listen({ toolsListChanged: true }) : undefined;
  return async () => {
    await until(() => changes.length > 0);
    await subscription?.close();
  };
};
const report = await visit(client, { call, changed });
console.log(JSON.stringify(report));
await client.close();
