import assert from "node:assert/strict";
import { test } from "node:test";

import { Pegboard, PegboardError } from "../src/index.js";

const url = process.env["PEGBOARD_URL"] ?? "";
const token = process.env["PEGBOARD_TOKEN"] ?? "";
const pegboard = new Pegboard({ url: `${url}/`, token, timeout: 60_000 });
const TOOLS = [
  { name: "tide", description: "When the tide is high at a harbour", inputSchema: { type: "object" } },
  { name: "wind", description: "How strong the wind blows", inputSchema: { type: "object" } },
];

function refused(code: string, status: number) {
  return (error: unknown) => error instanceof PegboardError && error.code === code && error.status === status;
}

test("a turn gets the tools that it needs, of the caller's own", async () => {
  const answer = await pegboard.route({ query: "when is high tide in Bergen?", tools: TOOLS });
  assert.equal(answer.candidates[0]?.name, "tide");
  assert.deepEqual(answer.tools.find((tool) => tool["name"] === "tide"), TOOLS[0]);
});

test("a turn gets the tools that it needs, of the gateway's servers", async () => {
  const answer = await pegboard.route({ messages: [{ role: "user", content: "when do trains leave?" }], format: "openai" });
  assert.equal(answer.candidates[0]?.name, "timetable");
});

test("a search finds a tool by what it does, and says when nothing matches", async () => {
  const found = await pegboard.search({ query: "high tide", tools: TOOLS, limit: 1 });
  assert.deepEqual(found.tools.map((tool) => tool.name), ["tide"]);
  const nothing = await pegboard.search({ query: "qwertz xyzzy", tools: TOOLS });
  assert.deepEqual(nothing.tools, []);
  assert.ok(nothing.why);
});

test("an outcome is counted, and one of an unknown turn is refused", async () => {
  const { turn } = await pegboard.route({ query: "the tide?", tools: TOOLS });
  await pegboard.outcome({ tool: "tide", success: true, latency_ms: 12, turn });
  await assert.rejects(pegboard.outcome({ tool: "tide", success: true, turn: "none" }), refused("unknown_turn", 404));
});

test("errors have a code, a status and a remedy", async () => {
  await assert.rejects(pegboard.route({}), (error: PegboardError) => {
    assert.equal(error.code, "invalid_request");
    assert.match(error.message, /give either query or messages/);
    return error.remedy !== undefined;
  });
  await assert.rejects(new Pegboard({ url }).route({ query: "x" }), refused("unauthorized", 401));
  await assert.rejects(new Pegboard({ url, token: "wrong" }).route({ query: "x" }), refused("unauthorized", 401));
});

test("an address where nobody answers is said, with what to do", async () => {
  await assert.rejects(new Pegboard({ url: "http://127.0.0.1:9" }).route({ query: "x" }), (error: PegboardError) => {
    assert.equal(error.code, "unreachable");
    return /pegboard serve/.test(error.message);
  });
});

test("an answer of another server is not taken for Pegboard's", async () => {
  const other = async () => new Response("<html>", { status: 502 });
  await assert.rejects(new Pegboard({ fetch: other }).route({ query: "x" }), refused("unexpected_answer", 502));
});

test("a request ends when its time is up, and when its caller aborts it", async () => {
  const silent: typeof fetch = (_, init) =>
    new Promise((_, reject) => {
      const signal = init?.signal;
      if (signal?.aborted) reject(signal.reason);
      signal?.addEventListener("abort", () => reject(signal.reason));
    });
  const slow = new Pegboard({ fetch: silent, timeout: 1 });
  // AbortSignal.timeout alone does not keep node alive
  const alive = setInterval(() => undefined, 1000);
  await assert.rejects(slow.route({ query: "x" }), refused("unreachable", 0));
  const aborted = AbortSignal.abort(new Error("enough"));
  await assert.rejects(new Pegboard({ fetch: silent }).route({ query: "x" }, aborted), /enough/);
  clearInterval(alive);
});
