/** A client of the HTTP API of `pegboard serve`. It needs nothing but `fetch`. */

import type { components } from "./schema.js";

type Schemas = components["schemas"];
/** Fields with a default may be left out of a request. */
type Given<T, Required extends keyof T> = Partial<Omit<T, Required>> & Pick<T, Required>;

export type RouteRequest = Given<Schemas["RouteRequest"], never>;
export type RouteAnswer = Schemas["RouteAnswer"];
export type SearchRequest = Given<Schemas["SearchRequest"], "query">;
export type SearchAnswer = Schemas["SearchAnswer"];
export type FoundTool = Schemas["FoundTool"];
export type OutcomeRequest = Given<Schemas["OutcomeRequest"], "tool" | "success">;

export interface PegboardOptions {
  /** Where `pegboard serve` listens; by default on this machine. */
  url?: string;
  /** A token made by `pegboard keys new`, or one of the configured issuer, if the gateway requires one. */
  token?: string;
  /** Milliseconds that a request may take. */
  timeout?: number;
  /** In place of the global `fetch`. */
  fetch?: typeof fetch;
}

/** What the gateway refused, or why it could not be reached (`code` is then `unreachable`, `status` 0). */
export class PegboardError extends Error {
  override readonly name = "PegboardError";

  constructor(
    readonly code: string,
    message: string,
    readonly status: number,
    readonly remedy?: string,
  ) {
    super(remedy ? `${message} ${remedy}` : message);
  }
}

export class Pegboard {
  readonly #url: string;
  readonly #headers: Record<string, string>;
  readonly #timeout: number;
  readonly #fetch: typeof fetch;

  constructor(options: PegboardOptions = {}) {
    this.#url = (options.url ?? "http://127.0.0.1:7332").replace(/\/+$/, "");
    this.#headers = { "content-type": "application/json" };
    if (options.token) this.#headers["authorization"] = `Bearer ${options.token}`;
    this.#timeout = options.timeout ?? 10_000;
    this.#fetch = options.fetch ?? fetch;
  }

  /** The tools of a turn: among `tools`, or among those of the gateway's servers. */
  async route(request: RouteRequest, signal?: AbortSignal): Promise<RouteAnswer> {
    return (await this.#post("route", request, signal)) as RouteAnswer;
  }

  /** A search for a tool that a turn did not get: the way back. */
  async search(request: SearchRequest, signal?: AbortSignal): Promise<SearchAnswer> {
    return (await this.#post("search", request, signal)) as SearchAnswer;
  }

  /** Report how a call ended that did not go through the gateway's own `/mcp`. */
  async outcome(request: OutcomeRequest, signal?: AbortSignal): Promise<void> {
    await this.#post("outcome", request, signal);
  }

  async #post(path: string, body: unknown, signal?: AbortSignal): Promise<unknown> {
    const limit = AbortSignal.timeout(this.#timeout);
    let response: Response;
    let text: string;
    try {
      response = await this.#fetch(`${this.#url}/v1/${path}`, {
        method: "POST",
        headers: this.#headers,
        body: JSON.stringify(body),
        signal: signal ? AbortSignal.any([signal, limit]) : limit,
      });
      text = await response.text();
    } catch (error) {
      if (signal?.aborted) throw error;
      const why = limit.aborted ? `did not answer within ${this.#timeout} ms` : `cannot be reached: ${reason(error)}`;
      throw new PegboardError("unreachable", `Pegboard at ${this.#url} ${why}.`, 0, "Start it with `pegboard serve`.");
    }
    if (!response.ok) throw refusal(response.status, text);
    return text ? JSON.parse(text) : undefined;
  }
}

function refusal(status: number, text: string): PegboardError {
  try {
    const said = JSON.parse(text) as { error?: string; message?: string; remedy?: string };
    if (said.error && said.message) return new PegboardError(said.error, said.message, status, said.remedy);
  } catch {
    // not from Pegboard: a proxy, or another server at this address
  }
  return new PegboardError("unexpected_answer", `The answer has the status ${status} and is not Pegboard's.`, status);
}

function reason(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return cause instanceof Error ? cause.message || cause.name : String(cause);
}
