import { expect, test } from "vitest";
import { withDetails } from "./notes";

test("indented items belong to the item before them", () => {
  const label = (text: string) => text;
  expect(withDetails(["Step", "  median of", "  drift", "Threads"], label)).toEqual([
    { item: "Step", details: ["  median of", "  drift"] },
    { item: "Threads", details: [] },
  ]);
});
