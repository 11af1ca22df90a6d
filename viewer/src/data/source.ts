// Where answers come from: the server that this page was loaded from, or answers stored in the page (a one-file report).

import { anything, object, optional, record, string } from "./decode";

export type Params = Record<string, string | number | boolean | null | undefined>;

const refusal = object({ error: string });

// A failed request; `message` is the server's line for people.
class AnswerError extends Error {
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message);
  }
}

export interface Source {
  // True for a one-file report: only stored answers are available.
  readonly stored: boolean;
  json(path: string, params?: Params, signal?: AbortSignal): Promise<unknown>;
  bytes(path: string, params?: Params, signal?: AbortSignal): Promise<ArrayBuffer>;
  post(path: string, body: unknown, signal?: AbortSignal): Promise<unknown>;
}

// `t/0/tiles?level=3&first=0`: parameters in the given order, without those that are null or undefined.
export function requestKey(path: string, params: Params = {}): string {
  const pairs = Object.entries(params)
    .filter(([, value]) => value !== null && value !== undefined)
    .map(([key, value]) => `${key}=${encodeURIComponent(typeof value === "boolean" ? Number(value) : value!)}`);
  return pairs.length > 0 ? `${path}?${pairs.join("&")}` : path;
}

export class HttpSource implements Source {
  readonly stored = false;

  constructor(
    private readonly base: string,
    private readonly token: string,
  ) {}

  async json(path: string, params?: Params, signal?: AbortSignal): Promise<unknown> {
    return (await this.ask(requestKey(path, params), { signal })).json();
  }

  async bytes(path: string, params?: Params, signal?: AbortSignal): Promise<ArrayBuffer> {
    return (await this.ask(requestKey(path, params), { signal })).arrayBuffer();
  }

  async post(path: string, body: unknown, signal?: AbortSignal): Promise<unknown> {
    const headers = { "Content-Type": "application/json" };
    return (await this.ask(path, { method: "POST", body: JSON.stringify(body), headers, signal })).json();
  }

  private async ask(key: string, init: RequestInit): Promise<Response> {
    let response: Response;
    try {
      response = await fetch(`${this.base}api/${key}`, {
        ...init,
        headers: { ...init.headers, "X-Firelane-Token": this.token },
      });
    } catch (error) {
      if (init.signal?.aborted) throw error;
      throw new AnswerError("The server is not responding. Is `firelane view` (or TensorBoard) still running?", 0);
    }
    if (response.ok) return response;
    const text = await response.text();
    let message = `The server returned status ${response.status}`;
    try {
      message = refusal(JSON.parse(text)).error;
    } catch {
      // Not one of our server's errors: the status has to do.
    }
    if (response.status === 403) message = "This link's token is not valid: open the URL that `firelane view` printed.";
    throw new AnswerError(message, response.status);
  }
}

export const storedAnswers = record(object({ json: anything, base64: optional(string) }));
export type StoredAnswers = Record<string, { json?: unknown; base64?: string }>;

export class StoredSource implements Source {
  readonly stored = true;

  constructor(private readonly answers: StoredAnswers) {}

  json(path: string, params?: Params): Promise<unknown> {
    const found = this.find(path, params);
    if (found?.json === undefined) {
      return Promise.reject(
        new AnswerError("Not part of this report: open the trace with `firelane view`.", 404),
      );
    }
    return Promise.resolve(found.json);
  }

  bytes(path: string, params?: Params): Promise<ArrayBuffer> {
    const found = this.find(path, params)?.base64;
    if (found === undefined) return Promise.reject(new AnswerError("Not part of this report.", 404));
    return Promise.resolve(fromBase64(found));
  }

  post(): Promise<unknown> {
    return Promise.reject(new AnswerError("A report cannot be queried: open the trace with `firelane view`.", 404));
  }

  // The bytes of every stored answer whose request starts with `prefix`.
  *allBytes(prefix: string): Generator<ArrayBuffer> {
    for (const [key, answer] of Object.entries(this.answers)) {
      if (key.startsWith(prefix) && answer.base64 !== undefined) yield fromBase64(answer.base64);
    }
  }

  // The same request; for curves any answer with the same path, because a coarser one will do.
  private find(path: string, params?: Params): StoredAnswers[string] | undefined {
    const exact = this.ownRequest(requestKey(path, params));
    if (exact || !/\/(counters|memory\/curve)$/.test(path)) return exact ?? (params ? this.ignoringRows(path, params) : undefined);
    const key = Object.keys(this.answers).find((k) => k === path || k.startsWith(`${path}?`));
    return key === undefined ? undefined : this.own(key);
  }

  // Ignores `rows`, which only limits what is sent.
  private ignoringRows(path: string, params: Params): StoredAnswers[string] | undefined {
    const { rows: _rows, ...rest } = params;
    return _rows === undefined ? undefined : this.ownRequest(requestKey(path, rest));
  }

  // The program writes lists as they are: `lanes=0,1`.
  private ownRequest(key: string): StoredAnswers[string] | undefined {
    return this.own(key) ?? this.own(decodeURIComponent(key));
  }

  private own(key: string): StoredAnswers[string] | undefined {
    return Object.hasOwn(this.answers, key) ? this.answers[key] : undefined;
  }
}

function fromBase64(text: string): ArrayBuffer {
  const binary = atob(text);
  const out = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; ++i) out[i] = binary.charCodeAt(i);
  return out.buffer;
}
