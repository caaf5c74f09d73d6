// What both TypeScript clients do with a server, and what comes of it.

export const logs = [];
export const changes = [];

export const answers = {
  elicit: () => ({ action: "accept", content: { row: 3, meal: true } }),
  sample: () => ({
    role: "assistant",
    content: { type: "text", text: "A sampled text." },
    model: "none",
    stopReason: "endTurn",
  }),
  roots: () => ({ roots: [{ uri: "file:///work" }] }),
};

async function everything(ask, field) {
  const found = [];
  let cursor;
  do {
    const page = await ask(cursor === undefined ? undefined : { cursor });
    found.push(...page[field]);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return [...new Map(found.map((one) => [one.uri ?? one.uriTemplate ?? one.name, one])).values()];
}

async function attempt(call) {
  try {
    return await call();
  } catch (error) {
    return error.code;
  }
}

export async function visit(client, { call, changed }) {
  const text = async (name, args = {}) => (await call(name, args)).content[0].text;
  const progress = [];
  const tools = await everything((params) => client.listTools(params), "tools");
  const added = await call("add", { a: 1, b: 2 });
  const refused = await call("refuse", {});
  await call("walk", { steps: 3 }, { onprogress: (one) => progress.push(one.progress) });
  await call("chat", {});
  const blocks = [];
  for (const name of ["picture", "sound", "link"]) blocks.push((await call(name, {})).content[0].type);
  const read = async (uri) => (await client.readResource({ uri })).contents[0];
  const completed = await client.complete({
    ref: { type: "ref/prompt", name: "review" },
    argument: { name: "language", value: "p" },
  });
  const prompt = await client.getPrompt({ name: "review", arguments: { language: "php" } });
  const report = {
    revision: await text("spoken"),
    server: client.getServerVersion().name,
    tools: tools.length,
    resources: (await everything((params) => client.listResources(params), "resources")).length,
    templates: (await everything((params) => client.listResourceTemplates(params), "resourceTemplates")).length,
    prompts: (await everything((params) => client.listPrompts(params), "prompts")).length,
    add: [added.content[0].text, added.structuredContent.result ?? added.structuredContent],
    blocks,
    refuse: [refused.isError, refused.content[0].text],
    "unknown tool": await attempt(() => call("nobody", {})),
    "unknown resource": await attempt(() => read("house://nowhere")),
    text: (await read("house://text")).text,
    bytes: (await read("house://bytes")).blob,
    template: (await read("house://files/a")).text,
    prompt: prompt.messages[0].content.text,
    complete: completed.completion.values,
    progress,
    logs,
    form: await text("ask_form"),
    model: await text("ask_model"),
    roots: await text("ask_roots"),
  };
  const heard = await changed();
  await call("change", { what: "tools" });
  await heard();
  report.changes = true;
  await call("change", { what: "tools" });
  return report;
}

export function until(condition) {
  return new Promise((resolve, reject) => {
    const begun = Date.now();
    const look = () => {
      if (condition()) resolve();
      else if (Date.now() - begun > 5000) reject(new Error("nothing was heard of the change"));
      else setTimeout(look, 10);
    };
    look();
  });
}
