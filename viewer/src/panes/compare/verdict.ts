// The outcome of a comparison in one word. Pure.

import type { Cell } from "../../data/answers";

export interface Verdict {
  word: string;
  tone: "slower" | "faster" | "same" | "open";
}

export function verdictOf(outcome: Cell, ratio: Cell): Verdict {
  if (outcome === "more") return { word: "Slower", tone: "slower" };
  if (outcome === "less") return { word: "Faster", tone: "faster" };
  if (outcome === "same") return { word: "Same", tone: "same" };
  const change = typeof ratio === "number" ? ratio - 1 : 0;
  return { word: Math.abs(change) < 0.0005 ? "No difference seen" : "Not certain", tone: "open" };
}
