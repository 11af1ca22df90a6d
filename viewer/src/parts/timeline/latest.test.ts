import { expect, test } from "vitest";
import { Latest } from "./latest";

const later = <T>(value: T, ms: number) => new Promise<T>((resolve) => setTimeout(() => resolve(value), ms));

test("only the last of several requests is answered", async () => {
  const heard: string[] = [];
  const latest = new Latest(() => {});
  const slow = latest.ask(
    () => later("slow", 20),
    (answer) => heard.push(answer),
  );
  const quick = latest.ask(
    () => later("quick", 1),
    (answer) => heard.push(answer),
  );
  await Promise.all([slow, quick]);
  expect(heard).toEqual(["quick"]);
});

test("a request that is replaced while it waits is never sent", async () => {
  let asked = 0;
  const latest = new Latest(() => {});
  const first = latest.ask(
    () => Promise.resolve(++asked),
    () => {},
    10,
  );
  const second = latest.ask(
    () => Promise.resolve(++asked),
    () => {},
    10,
  );
  await Promise.all([first, second]);
  expect(asked).toBe(1);
});

test("a failure is reported, but not that of a dropped request", async () => {
  const errors: unknown[] = [];
  const latest = new Latest((error) => errors.push(error));
  const fail = (text: string) => async () => {
    await later(0, 1);
    throw new Error(text);
  };
  const dropped = latest.ask(fail("dropped"), () => {});
  const told = latest.ask(fail("told"), () => {});
  await Promise.all([dropped, told]);
  expect(errors.map(String)).toEqual(["Error: told"]);
});
