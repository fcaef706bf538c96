import assert from "node:assert/strict";
import { test } from "node:test";

import { generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import type { ToolSet } from "ai";
import { MockLanguageModelV4, convertArrayToReadableStream } from "ai/test";

import { SEARCH, agent } from "../src/ai-sdk.js";
import { Pegboard, PegboardError } from "../src/index.js";
import type { OutcomeRequest } from "../src/index.js";

const url = process.env["PEGBOARD_URL"] ?? "";
const token = process.env["PEGBOARD_TOKEN"] ?? "";

/** A client that remembers which outcomes it reported. */
class Watched extends Pegboard {
  readonly reported: OutcomeRequest[] = [];
  override async outcome(request: OutcomeRequest): Promise<void> {
    this.reported.push(request);
    await super.outcome(request);
  }
}

type Call = { name: string; input: object };
type Generated = Awaited<ReturnType<MockLanguageModelV4["doGenerate"]>>;
type StreamPart =
  Awaited<ReturnType<MockLanguageModelV4["doStream"]>>["stream"] extends ReadableStream<infer Part> ? Part : never;
const USAGE = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

/** A model that makes these calls, one a step, and then says so; `offered` are the tools of each request. */
function scripted(calls: Call[]) {
  const offered: string[][] = [];
  let step = 0;
  const content = (): Generated["content"] => {
    const call = calls[step++];
    return call
      ? [{ type: "tool-call", toolCallId: String(step), toolName: call.name, input: JSON.stringify(call.input) }]
      : [{ type: "text", text: "done" }];
  };
  const reason = (made: Generated["content"]): Generated["finishReason"] => ({
    unified: made[0]?.type === "text" ? "stop" : "tool-calls",
    raw: undefined,
  });
  const model = new MockLanguageModelV4({
    doGenerate: async (options) => {
      offered.push((options.tools ?? []).map((each) => each.name));
      const made = content();
      return { content: made, finishReason: reason(made), usage: USAGE, warnings: [] };
    },
    doStream: async (options) => {
      offered.push((options.tools ?? []).map((each) => each.name));
      const made = content();
      const parts = made.flatMap((part): StreamPart[] =>
        part.type === "text"
          ? [
              { type: "text-start", id: "0" },
              { type: "text-delta", id: "0", delta: part.text },
              { type: "text-end", id: "0" },
            ]
          : [part as Extract<Generated["content"][number], { type: "tool-call" }>],
      );
      const all: StreamPart[] = [
        { type: "stream-start", warnings: [] },
        ...parts,
        { type: "finish", finishReason: reason(made), usage: USAGE },
      ];
      return { stream: convertArrayToReadableStream(all) };
    },
  });
  return { model, offered };
}

const THINGS = ["invoice", "ticket", "contact", "calendar event", "document", "branch", "deployment", "alert"];
const VERBS = ["create", "delete", "list", "update", "archive", "export", "share", "restore", "rename", "copy"];

/** 200 tools, of which one answers and one fails. */
function many(): ToolSet {
  const tools: ToolSet = {};
  for (const verb of VERBS)
    for (const thing of THINGS)
      for (const where of ["", " of a team", " of a customer"]) {
        if (Object.keys(tools).length === 198) break;
        const name = `${verb}_${thing}${where}`.replaceAll(" ", "_");
        tools[name] = tool({
          description: `${verb} a ${thing}${where}`,
          inputSchema: jsonSchema({ type: "object", properties: {} }),
          execute: async () => `${name} done`,
        });
      }
  tools["high_tide"] = tool({
    description: "When the tide is high at a harbour",
    inputSchema: jsonSchema<{ harbour: string }>({ type: "object", properties: { harbour: { type: "string" } } }),
    execute: async ({ harbour }) => `${harbour}: 16:20`,
  });
  tools["ferry"] = tool({
    description: "When the next ferry crosses the fjord",
    inputSchema: jsonSchema({ type: "object", properties: {} }),
    execute: async (): Promise<string> => {
      throw new Error("the ferry is late");
    },
  });
  return tools;
}

test("each step gets a few tools of 200, the right one among them, and its outcome is reported", async () => {
  const pegboard = new Watched({ url, token, timeout: 120_000 });
  const { tools, prepareStep } = await agent(pegboard, many());
  const { model, offered } = scripted([{ name: "high_tide", input: { harbour: "Bergen" } }]);
  const prompt = "When is high tide in the harbour of Bergen?";
  const result = await generateText({ model, tools, prepareStep, prompt, stopWhen: stepCountIs(5) });

  assert.equal(result.text, "done");
  assert.equal(offered.length, 2);
  for (const names of offered) {
    assert.ok(names.includes("high_tide") && names.includes(SEARCH));
    assert.ok(names.length < 40, `${names.length} tools`);
  }
  assert.equal(JSON.stringify(result.steps[0]?.toolResults[0]?.output), '"Bergen: 16:20"');
  assert.deepEqual(pegboard.reported.map(({ tool, success }) => [tool, success]), [["high_tide", true]]);
  assert.ok(pegboard.reported[0]?.turn);
});

test("a model that misses a tool searches for it, and calls it in the next step; a failure is reported as one", async () => {
  const pegboard = new Watched({ url, token, timeout: 120_000 });
  const { tools, prepareStep } = await agent(pegboard, many());
  const { model, offered } = scripted([
    { name: SEARCH, input: { query: "next ferry across the fjord" } },
    { name: "ferry", input: {} },
  ]);
  const run = { model, tools, prepareStep, prompt: "archive the invoice", stopWhen: stepCountIs(5) };
  const result = await generateText(run);

  assert.equal(result.text, "done");
  assert.ok(!offered[0]?.includes("ferry"));
  assert.ok(offered[1]?.includes("ferry"));
  assert.deepEqual(pegboard.reported.map(({ tool, success }) => [tool, success]), [["ferry", false]]);
});

test("a streamed run is served like another", async () => {
  const { tools, prepareStep } = await agent(new Pegboard({ url, token, timeout: 120_000 }), many());
  const { model, offered } = scripted([{ name: "high_tide", input: { harbour: "Oslo" } }]);
  const result = streamText({ model, tools, prepareStep, prompt: "high tide in Oslo?", stopWhen: stepCountIs(5) });

  assert.equal(await result.text, "done");
  assert.ok(offered.every((names) => names.includes("high_tide") && names.length < 40));
});

test("200 runs at once get the tools of their own requests", async () => {
  const pegboard = new Pegboard({ url, token, timeout: 120_000 });
  const runs = Array.from({ length: 200 }, async (_, number) => {
    const own = `secret_of_${number}`;
    const secret = tool({
      description: `Open the safe of customer ${number}`,
      inputSchema: jsonSchema({ type: "object", properties: {} }),
      execute: async () => number,
    });
    const { tools, prepareStep } = await agent(pegboard, { [own]: secret, high_tide: many()["high_tide"]! });
    const { model, offered } = scripted([]);
    await generateText({ model, tools, prepareStep, prompt: "open the safe" });
    return offered.flat().filter((name) => name.startsWith("secret_of_") && name !== own).length;
  });
  assert.equal((await Promise.all(runs)).reduce((sum, leaks) => sum + leaks, 0), 0);
});

test("without Pegboard a step gets all tools, and the failure is told", async () => {
  const errors: unknown[] = [];
  const nowhere = new Pegboard({ url: "http://127.0.0.1:9" });
  const { tools, prepareStep } = await agent(nowhere, many(), { onError: (error) => errors.push(error) });
  const { model, offered } = scripted([]);
  const result = await generateText({ model, tools, prepareStep, prompt: "high tide in Oslo?" });

  assert.equal(result.text, "done");
  assert.equal(offered[0]?.length, 201);
  assert.ok(errors[0] instanceof PegboardError);
});

test("tools that run at the provider, and those that are always given, are in every step", async () => {
  const { tools, prepareStep } = await agent(
    new Pegboard({ url, token, timeout: 120_000 }),
    {
      ...many(),
      web: { type: "provider", isProviderExecuted: true, id: "mock.web", args: {}, inputSchema: jsonSchema({ type: "object" }) } as ToolSet[string],
    },
    { always: ["ferry"] },
  );
  const { model, offered } = scripted([]);
  await generateText({ model, tools, prepareStep, prompt: "archive the invoice" });

  assert.ok(offered[0]?.includes("ferry"));
  assert.ok(offered[0]?.includes("web"));
});
