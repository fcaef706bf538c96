// One job through npm's @modelcontextprotocol/sdk (1.x) or its successor @modelcontextprotocol/client (2.x).
// Arguments: the folder they are installed in, and 1 or 2. Jobs as in `jobs.py`.

import { createRequire } from "node:module";
import { text } from "node:stream/consumers";

const [, , folder, major] = process.argv;
const require = createRequire(`${folder}/package.json`);
const { Client, StdioClientTransport, StreamableHTTPClientTransport } =
  major === "1"
    ? {
        ...require("@modelcontextprotocol/sdk/client/index.js"),
        ...require("@modelcontextprotocol/sdk/client/stdio.js"),
        ...require("@modelcontextprotocol/sdk/client/streamableHttp.js"),
      }
    : { ...require("@modelcontextprotocol/client"), ...require("@modelcontextprotocol/client/stdio") };

const job = JSON.parse(await text(process.stdin));
const client = new Client({ name: "npm-sdk", version: "0" }, { versionNegotiation: { mode: job.mode ?? "legacy" } });
const notified = [];
let before = 0;
let told = () => {};
client.fallbackNotificationHandler = async ({ method }) => {
  notified.push(method);
  told();
};

async function step([kind, name, given]) {
  if (kind === "list") {
    const tools = [];
    let cursor;
    do {
      const page = await client.listTools({ cursor });
      tools.push(...page.tools);
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    return tools;
  }
  if (kind === "call") {
    before = notified.length;
    try {
      return await client.callTool({ name, arguments: given });
    } catch ({ code, message }) {
      return { error: { code, message } };
    }
  }
  await new Promise((resolve, reject) => {
    told = () => notified.includes(name, before) && resolve();
    told();
    setTimeout(() => reject(new Error(`no ${name}`)), 30_000).unref();
  });
  return notified.slice(before);
}

const transport =
  job.transport === "stdio"
    ? new StdioClientTransport({ command: job.command, args: job.args, env: job.env, cwd: job.cwd, stderr: "inherit" })
    : new StreamableHTTPClientTransport(new URL(job.url), { requestInit: { headers: job.headers } });
await client.connect(transport);
const results = [];
for (const each of job.steps) results.push(await step(each));
console.log(JSON.stringify({ protocol: transport.protocolVersion ?? client.getNegotiatedProtocolVersion?.() ?? null, results, notified }));
await client.close();
