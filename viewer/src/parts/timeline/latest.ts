// One request at a time: a new one aborts the last, and a late answer is dropped.

export const kSettleMs = 140; // typing and dragging send a request when they pause

export class Latest {
  private control = new AbortController();

  constructor(private readonly failed: (error: unknown) => void) {}

  cancel(): void {
    this.control.abort();
  }

  // `delayMs` debounces requests that change while the user types or drags.
  async ask<T>(request: (signal: AbortSignal) => Promise<T>, onAnswer: (answer: T) => void, delayMs = 0): Promise<void> {
    this.control.abort();
    const { signal } = (this.control = new AbortController());
    try {
      if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs));
      if (signal.aborted) return;
      const answer = await request(signal);
      if (!signal.aborted) onAnswer(answer);
    } catch (error) {
      if (!signal.aborted) this.failed(error);
    }
  }
}
