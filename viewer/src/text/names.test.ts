import { expect, test } from "vitest";
import { truncateMiddle, shortName } from "./names";

test("kernel names lose the noise: return type, ATen's namespaces, parameter types", () => {
  expect(shortName("void at::native::vectorized_elementwise_kernel<4, at::native::AddOp<float>>(int, float*)")).toBe(
    "vectorized_elementwise_kernel<4, AddOp<float>>",
  );
  expect(shortName("void at::native::(anonymous namespace)::softmax<float>(float*, int)")).toBe("softmax<float>");
});

test("parentheses inside template arguments stay", () => {
  expect(shortName("void at::native::f<at::native::g(int)::{lambda(int)#1}>(int)")).toBe("f<g(int)::{lambda(int)#1}>");
});

test("other names stay as they are", () => {
  for (const name of ["aten::mm", "Memcpy HtoD (Pinned -> Device)", "train.py(12): step", "<img src=x onerror=alert(1)>"]) {
    expect(shortName(name)).toBe(name);
  }
});

test("long text is truncated in the middle", () => {
  expect(truncateMiddle("abcdefghij", 6)).toBe("abc…ij");
  expect(truncateMiddle("abc", 6)).toBe("abc");
});
