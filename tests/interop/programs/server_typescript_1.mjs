// A server of the official TypeScript SDK 1: TRANSPORT [PORT].

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { completable } from "@modelcontextprotocol/sdk/server/completable.js";
import { McpServer, ResourceTemplate } from "@modelcontextprotocol/sdk/server/mcp.js";
import { SSEServerTransport } from "@modelcontextprotocol/sdk/server/sse.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { z } from "zod";

const text = (said) => ({ content: [{ type: "text", text: said }] });

function make() {
  const mcp = new McpServer(
    { name: "peer", version: "1.0" },
    { instructions: "Look around.", capabilities: { logging: {} } },
  );
  const { server } = mcp;
  mcp.registerTool(
    "add",
    { inputSchema: { a: z.number(), b: z.number() }, outputSchema: { result: z.number() } },
    async ({ a, b }) => ({ ...text(String(a + b)), structuredContent: { result: a + b } }),
  );
  mcp.registerTool("refuse", {}, async () => ({ ...text("not today"), isError: true }));
  mcp.registerTool("picture", {}, async () => ({
    content: [{ type: "image", data: "iVBORw==", mimeType: "image/png" }],
  }));
  mcp.registerTool("walk", { inputSchema: { steps: z.number() } }, async ({ steps }, extra) => {
    const progressToken = extra._meta?.progressToken;
    for (let step = 1; step <= steps; step++) {
      if (progressToken !== undefined) {
        const params = { progressToken, progress: step, total: steps, message: `step ${step}` };
        await extra.sendNotification({ method: "notifications/progress", params });
      }
    }
    return text("arrived");
  });
  mcp.registerTool("chat", {}, async (extra) => {
    for (const [level, data] of [["info", "a fact"], ["warning", "a warning"]]) {
      await extra.sendNotification({ method: "notifications/message", params: { level, data } });
    }
    return text("said");
  });
  mcp.registerTool("ask_form", {}, async () => {
    const requestedSchema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
    const answer = await server.elicitInput({ message: "Who?", requestedSchema });
    return text(`hello ${answer.content.name}`);
  });
  mcp.registerTool("ask_model", {}, async () => {
    const messages = [{ role: "user", content: { type: "text", text: "Say something." } }];
    const said = await server.createMessage({ messages, maxTokens: 10 });
    return text(`${said.model}: ${said.content.text}`);
  });
  mcp.registerTool("ask_roots", {}, async () => text((await server.listRoots()).roots[0].uri));
  mcp.registerTool("change", {}, async () => {
    await server.sendToolListChanged();
    return text("changed");
  });
  mcp.registerResource("text", "peer://text", { mimeType: "text/plain" }, async (uri) => ({
    contents: [{ uri: uri.href, text: "some text", mimeType: "text/plain" }],
  }));
  mcp.registerResource("data", "peer://bytes", { mimeType: "application/octet-stream" }, async (uri) => ({
    contents: [{ uri: uri.href, blob: "AP8=" }],
  }));
  mcp.registerResource(
    "file",
    new ResourceTemplate("peer://files/{name}", { list: undefined }),
    {},
    async (uri, { name }) => ({ contents: [{ uri: uri.href, text: `file ${name}` }] }),
  );
  const language = completable(z.string(), (typed) => ["python", "perl"].filter((word) => word.startsWith(typed)));
  mcp.registerPrompt("review", { argsSchema: { language } }, (given) => ({
    messages: [{ role: "user", content: { type: "text", text: `Review this ${given.language}.` } }],
  }));
  return mcp;
}

const [transport, port] = process.argv.slice(2);
const sessions = new Map();

async function body(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  return chunks.length ? JSON.parse(Buffer.concat(chunks).toString()) : undefined;
}

async function streamable(request, response) {
  let session = sessions.get(request.headers["mcp-session-id"]);
  const message = request.method === "POST" ? await body(request) : undefined;
  if (session === undefined) {
    if (request.headers["mcp-session-id"] !== undefined) return response.writeHead(404).end();
    session = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => sessions.set(id, session),
    });
    await make().connect(session);
  }
  await session.handleRequest(request, response, message);
}

async function pair(request, response) {
  const url = new URL(request.url, "http://127.0.0.1");
  if (request.method === "GET" && url.pathname === "/sse") {
    const session = new SSEServerTransport("/messages", response);
    sessions.set(session.sessionId, session);
    await make().connect(session);
  } else if (request.method === "POST" && url.pathname === "/messages") {
    await sessions.get(url.searchParams.get("sessionId")).handlePostMessage(request, response, await body(request));
  } else {
    response.writeHead(404).end();
  }
}

if (transport === "stdio") {
  await make().connect(new StdioServerTransport());
} else {
  createServer(transport === "http" ? streamable : pair).listen(Number(port), "127.0.0.1");
}
