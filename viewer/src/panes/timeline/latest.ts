// One question at a time: asking again drops the one before, and an answer that comes too late is not heard.

export const kSettleMs = 140; // typing and dragging ask once they pause

export class Latest {
  private control = new AbortController();

  constructor(private readonly failed: (error: unknown) => void) {}

  cancel(): void {
    this.control.abort();
  }

  // `delayMs` is for questions that change as one types or drags.
  async ask<T>(question: (signal: AbortSignal) => Promise<T>, heard: (answer: T) => void, delayMs = 0): Promise<void> {
    this.control.abort();
    const { signal } = (this.control = new AbortController());
    try {
      if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs));
      if (signal.aborted) return;
      const answer = await question(signal);
      if (!signal.aborted) heard(answer);
    } catch (error) {
      if (!signal.aborted) this.failed(error);
    }
  }
}
