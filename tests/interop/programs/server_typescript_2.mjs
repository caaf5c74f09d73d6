// A server of the official TypeScript SDK 2: TRANSPORT [PORT].

import { createServer } from "node:http";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { acceptedContent, completable, createMcpHandler, inputRequired, McpServer, ResourceTemplate } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

const text = (said) => ({ content: [{ type: "text", text: said }] });
const Name = z.object({ name: z.string() });

function make() {
  const mcp = new McpServer(
    { name: "peer", version: "1.0" },
    { instructions: "Look around.", capabilities: { logging: {} } },
  );
  mcp.registerTool(
    "add",
    { inputSchema: z.object({ a: z.number(), b: z.number() }), outputSchema: z.object({ result: z.number() }) },
    async ({ a, b }) => ({ ...text(String(a + b)), structuredContent: { result: a + b } }),
  );
  mcp.registerTool("refuse", {}, async () => ({ ...text("not today"), isError: true }));
  mcp.registerTool("picture", {}, async () => ({
    content: [{ type: "image", data: "iVBORw==", mimeType: "image/png" }],
  }));
  mcp.registerTool("walk", { inputSchema: z.object({ steps: z.number() }) }, async ({ steps }, ctx) => {
    const progressToken = ctx.mcpReq._meta?.progressToken;
    for (let step = 1; step <= steps; step++) {
      if (progressToken !== undefined) {
        const params = { progressToken, progress: step, total: steps, message: `step ${step}` };
        await ctx.mcpReq.notify({ method: "notifications/progress", params });
      }
    }
    return text("arrived");
  });
  mcp.registerTool("chat", {}, async (ctx) => {
    await ctx.mcpReq.log("info", "a fact");
    await ctx.mcpReq.log("warning", "a warning");
    return text("said");
  });
  mcp.registerTool("ask_form", {}, async (ctx) => {
    const given = await acceptedContent(ctx.mcpReq.inputResponses, "who", Name);
    if (given !== undefined) return text(`hello ${given.name}`);
    return inputRequired({ inputRequests: { who: inputRequired.elicit({ message: "Who?", requestedSchema: Name }) } });
  });
  mcp.registerTool("ask_model", {}, async (ctx) => {
    const said = ctx.mcpReq.inputResponses?.model;
    if (said !== undefined) return text(`${said.model}: ${said.content.text}`);
    const messages = [{ role: "user", content: { type: "text", text: "Say something." } }];
    return inputRequired({ inputRequests: { model: inputRequired.createMessage({ messages, maxTokens: 10 }) } });
  });
  mcp.registerTool("ask_roots", {}, async (ctx) => {
    const found = ctx.mcpReq.inputResponses?.roots;
    if (found !== undefined) return text(found.roots[0].uri);
    return inputRequired({ inputRequests: { roots: inputRequired.listRoots() } });
  });
  mcp.registerTool("change", {}, async () => {
    mcp.sendToolListChanged();
    handler?.notify.toolsChanged();
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
  mcp.registerPrompt("review", { argsSchema: z.object({ language }) }, (given) => ({
    messages: [{ role: "user", content: { type: "text", text: `Review this ${given.language}.` } }],
  }));
  return mcp;
}

const [transport, port] = process.argv.slice(2);
let handler;
if (transport === "stdio") {
  serveStdio(make);
} else {
  handler = createMcpHandler(make);
  createServer(toNodeHandler(handler)).listen(Number(port), "127.0.0.1");
}
