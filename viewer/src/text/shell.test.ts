import { expect, test } from "vitest";
import { shellQuoted } from "./shell";

test("words that need no quotes get none", () => {
  for (const word of ["run.lane", "/a/b-c_d/e.json.gz", "--flag=1,2"]) expect(shellQuoted(word)).toBe(word);
});

test("what a shell would take apart is one word", () => {
  expect(shellQuoted("my run.lane")).toBe("'my run.lane'");
  expect(shellQuoted("it's.lane")).toBe("'it'\\''s.lane'");
  expect(shellQuoted("$HOME")).toBe("'$HOME'");
  expect(shellQuoted("")).toBe("''");
});
