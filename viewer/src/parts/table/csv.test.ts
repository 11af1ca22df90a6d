import { expect, test } from "vitest";
import { csvCell, toCsv } from "./csv";

test("commas, quotes and line breaks are quoted", () => {
  expect(csvCell("a,b")).toBe('"a,b"');
  expect(csvCell('say "hi"')).toBe('"say ""hi"""');
  expect(csvCell("two\nlines")).toBe('"two\nlines"');
});

test("text that a spreadsheet would run as a formula becomes text", () => {
  expect(csvCell('=HYPERLINK("http://x","y")')).toBe('"\'=HYPERLINK(""http://x"",""y"")"');
  for (const bad of ["=1", "+1", "-1", "@x", "\tx"]) expect(csvCell(bad)).toBe(`'${bad}`);
});

test("numbers stay plain, even negative ones; unknown cells are empty", () => {
  expect(csvCell(-12)).toBe("-12");
  expect(csvCell(0.5)).toBe("0.5");
  expect(csvCell(null)).toBe("");
});

test("headers are the columns' names", () => {
  const columns = [
    { name: "name", label: "Name", kind: "text" as const },
    { name: "total_ns", label: "Total", kind: "duration" as const },
  ];
  expect(toCsv(columns, [["aten::mm", 12], ["x", null]])).toBe("name,total_ns\r\naten::mm,12\r\nx,\r\n");
});
