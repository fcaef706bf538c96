/** For the Vercel AI SDK: each step gets the tools that it needs, and a tool to search for the others. */

import { asSchema, jsonSchema, tool } from "ai";
import type { ModelMessage, Tool, ToolSet } from "ai";

import type { Pegboard, RouteRequest } from "./index.js";

export const SEARCH = "search_tools";
const SEARCHED = 5;

export interface AgentOptions {
  /** Names of tools that every step gets. */
  always?: string[];
  /** Fields of each route: `session`, `max_price`, `deadline`, `milestones`. */
  route?: Pick<RouteRequest, "session" | "max_price" | "deadline" | "milestones">;
  /** Told when Pegboard fails. The step then gets all tools: an agent works on without it. */
  onError?: (error: unknown) => void;
}

type SearchTool = Tool<{ query: string }, { tools: { name: string; description: string }[] }>;
type Definition = { name: string; description: string; inputSchema: unknown };

type Name<TOOLS extends ToolSet> = (keyof TOOLS & string) | typeof SEARCH;

export interface Agent<TOOLS extends ToolSet> {
  /** The tools and `search_tools`: give them to `generateText` or `streamText`. */
  tools: TOOLS & { search_tools: SearchTool };
  /** Give it as `prepareStep`. */
  prepareStep: (step: { messages: ModelMessage[] }) => Promise<{ activeTools?: Name<TOOLS>[] }>;
}

/**
 * The tools and the `prepareStep` of one run of an agent. Make one for each call of `generateText` or `streamText`:
 * it remembers what the run's searches found.
 *
 *     const { tools, prepareStep } = await agent(new Pegboard(), allTools);
 *     await generateText({ model, tools, prepareStep, prompt, stopWhen: stepCountIs(20) });
 */
export async function agent<TOOLS extends ToolSet>(
  pegboard: Pegboard,
  tools: TOOLS,
  options: AgentOptions = {},
): Promise<Agent<TOOLS>> {
  const definitions = await defined(tools);
  const ranked = new Set(definitions.map((each) => each.name));
  const fixed = Object.keys(tools).filter((name) => !ranked.has(name));
  const found = new Set<string>();
  let turn: string | undefined;

  const search: SearchTool = tool({
    description: `Search for a tool by what it does; ${ranked.size} are there. What is found can be called next.`,
    inputSchema: jsonSchema<{ query: string }>({
      type: "object",
      properties: { query: { type: "string", description: "What the tool has to do" } },
      required: ["query"],
      additionalProperties: false,
    }),
    execute: async ({ query }, { abortSignal }) => {
      const answer = await pegboard.search({ query, tools: definitions, limit: SEARCHED }, abortSignal);
      const best = answer.tools.length ? answer.tools : (answer.nearest ?? []);
      for (const each of best) found.add(each.name);
      return { tools: best.map(({ name, description }) => ({ name, description })) };
    },
  });

  const prepareStep: Agent<TOOLS>["prepareStep"] = async ({ messages }) => {
    try {
      const said = messages.flatMap(plain);
      const answer = await pegboard.route({ ...options.route, messages: said, tools: definitions, format: "none" });
      turn = answer.turn;
      const names = [...answer.active, ...found, ...fixed, ...(options.always ?? []), ...called(messages), SEARCH];
      const there = [...new Set(names)].filter((name): name is Name<TOOLS> => name === SEARCH || name in tools);
      return { activeTools: there };
    } catch (error) {
      options.onError?.(error);
      return {};
    }
  };

  const report = (name: string, success: boolean, started: number) => {
    const said = { tool: name, success, latency_ms: performance.now() - started };
    const session = options.route?.session;
    pegboard
      .outcome({ ...said, ...(turn ? { turn } : {}), ...(session ? { session } : {}) })
      .catch((error: unknown) => options.onError?.(error));
  };
  const own = Object.fromEntries(
    Object.entries(tools).map(([name, each]) => [name, ranked.has(name) ? observed(name, each as Tool, report) : each]),
  );
  return { tools: { ...own, [SEARCH]: search } as Agent<TOOLS>["tools"], prepareStep };
}

/** The tool, whose outcome is reported when it has been executed. */
function observed(name: string, each: Tool, report: (name: string, success: boolean, started: number) => void): Tool {
  const execute = each.execute;
  if (!execute) return each;
  const wrapped = (input: never, context: never): unknown => {
    const started = performance.now();
    const failed = (error: unknown): never => {
      report(name, false, started);
      throw error;
    };
    let result: unknown;
    try {
      result = (execute as (input: never, context: never) => unknown).call(each, input, context);
    } catch (error) {
      return failed(error);
    }
    if (isStream(result)) return result; // parts of a result: when it ends is not ours to await
    return Promise.resolve(result).then((value) => {
      report(name, true, started);
      return value;
    }, failed);
  };
  return { ...each, execute: wrapped } as unknown as Tool;
}

/** Definitions of the tools that can be ranked: those that run at the provider are left out, and always active. */
async function defined(tools: ToolSet): Promise<Definition[]> {
  const own = Object.entries(tools).filter(([, each]) => !String(each.type ?? "function").startsWith("provider"));
  return Promise.all(
    own.map(async ([name, each]) => ({
      name,
      description: typeof each.description === "string" ? each.description : "",
      inputSchema: await asSchema(each.inputSchema).jsonSchema,
    })),
  );
}

/** Names of the tools that the conversation called: they may be called again. */
function called(messages: ModelMessage[]): string[] {
  return messages.flatMap((message) =>
    message.role === "assistant" && typeof message.content !== "string"
      ? message.content.flatMap((part) => (part.type === "tool-call" ? [part.toolName] : []))
      : [],
  );
}

/** A message in the form of OpenAI's Chat Completions, as far as routing reads it. */
function plain(message: ModelMessage): Record<string, unknown>[] {
  if (typeof message.content === "string") return [{ role: message.role, content: message.content }];
  const parts = message.content as { type: string; text?: string; toolName?: string; output?: unknown }[];
  if (message.role === "tool") {
    return parts
      .filter((part) => part.type === "tool-result")
      .map((part) => ({ role: "tool", content: JSON.stringify(part.output) }));
  }
  const text = parts.filter((part) => part.type === "text").map(({ text }) => ({ type: "text", text }));
  const calls = parts.filter((part) => part.type === "tool-call").map(({ toolName }) => ({ function: { name: toolName } }));
  return [{ role: message.role, content: text, ...(calls.length ? { tool_calls: calls } : {}) }];
}

function isStream(value: unknown): boolean {
  return typeof value === "object" && value !== null && Symbol.asyncIterator in value;
}
