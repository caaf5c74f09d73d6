// The command line of the MCP Inspector, once for each thing that it can ask: TRANSPORT TARGET. Prints JSON.

import { execFile } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const [transport, target] = process.argv.slice(2);
const inspector = join(dirname(fileURLToPath(import.meta.url)), "node_modules", ".bin", "mcp-inspector");
const where = transport === "stdio" ? JSON.parse(target) : [target];

function ask(method, ...options) {
  return new Promise((resolve, reject) => {
    execFile(inspector, ["--cli", ...where, "--method", method, ...options], (error, stdout, stderr) => {
      if (!stdout) reject(new Error(`${method}: ${error}: ${stderr}`));
      else resolve(JSON.parse(stdout));
    });
  });
}

const added = await ask("tools/call", "--tool-name", "add", "--tool-arg", "a=1", "b=2");
const refused = await ask("tools/call", "--tool-name", "refuse");
const spoken = await ask("tools/call", "--tool-name", "spoken");
const report = {
  revision: spoken.content[0].text,
  tools: (await ask("tools/list")).tools.length,
  add: [added.content[0].text, added.structuredContent.result ?? added.structuredContent],
  refuse: [refused.isError, refused.content[0].text],
  resources: (await ask("resources/list")).resources.length,
  text: (await ask("resources/read", "--uri", "house://text")).contents[0].text,
  bytes: (await ask("resources/read", "--uri", "house://bytes")).contents[0].blob,
  templates: (await ask("resources/templates/list")).resourceTemplates.length,
  template: (await ask("resources/read", "--uri", "house://files/a")).contents[0].text,
  prompts: (await ask("prompts/list")).prompts.length,
  prompt: (await ask("prompts/get", "--prompt-name", "review", "--prompt-args", "language=php")).messages[0].content.text,
};
console.log(JSON.stringify(report));
