import { expect, test } from "vitest";
import { notesForPage, withDetails } from "./notes";

test("parts that name a command-line flag are dropped, the rest stays", () => {
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

test("indented items belong to the item before them", () => {
  const label = (text: string) => text;
  expect(withDetails(["Step", "  median of", "  drift", "Threads"], label)).toEqual([
    { item: "Step", details: ["  median of", "  drift"] },
    { item: "Threads", details: [] },
  ]);
});
