import { expect, test } from "vitest";
import { notesForPage, withDetails } from "./notes";

test("what names a flag of the command line is left out, the rest stays", () => {
  expect(
    notesForPage([
      "add --price-per-hour to see what a step costs",
      "lanes without slices: 2; --all shows them",
      "no power in this trace: energy is not known",
      "1 warm-up step is left out; a-b -- c",
    ]),
  ).toEqual([
    "lanes without slices: 2",
    "no power in this trace: energy is not known",
    "1 warm-up step is left out; a-b -- c",
  ]);
});

test("what is indented belongs to what stands before it", () => {
  const label = (text: string) => text;
  expect(withDetails(["Step", "  median of", "  drift", "Threads"], label)).toEqual([
    { item: "Step", details: ["  median of", "  drift"] },
    { item: "Threads", details: [] },
  ]);
});
