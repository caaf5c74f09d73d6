// The client of the official TypeScript SDK 1, told what to talk to: TRANSPORT TARGET. Prints what it got as JSON.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  LoggingMessageNotificationSchema,
  ToolListChangedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { answers, changes, logs, until, visit } from "./typescript_visit.mjs";

const [transport, target] = process.argv.slice(2);

function wire() {
  if (transport === "http") return new StreamableHTTPClientTransport(new URL(target));
  if (transport === "sse") return new SSEClientTransport(new URL(target));
  const [command, ...args] = JSON.parse(target);
  return new StdioClientTransport({ command, args });
}

const client = new Client(
  { name: "visitor", version: "1" },
  { capabilities: { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} } },
);
client.setRequestHandler(ElicitRequestSchema, answers.elicit);
client.setRequestHandler(CreateMessageRequestSchema, answers.sample);
client.setRequestHandler(ListRootsRequestSchema, answers.roots);
client.setNotificationHandler(LoggingMessageNotificationSchema, (one) => logs.push(one.params.level));
client.setNotificationHandler(ToolListChangedNotificationSchema, () => changes.push("tools"));

await client.connect(wire());
await client.setLoggingLevel("warning");
const call = (name, args, options) => client.callTool({ name, arguments: args }, undefined, options);
const changed = async () => () => until(() => changes.length > 0);
const report = await visit(client, { call, changed });
await client.ping();
console.log(JSON.stringify(report));
await client.close();
