// Readable kernel names. For display only: links, searches and copies use the full name.

// Drops the noise: the return type, ATen's namespaces, the parameter types at the end.
//   void at::native::(anonymous namespace)::foo<4, at::native::AddOp<float> >(int, float*) -> foo<4, AddOp<float> >
export function shortName(name: string): string {
  if (!/^(?:static\s+)?void |at::native|at::cuda|\(anonymous namespace\)/.test(name)) return name;
  let out = name.replace(/^(?:static\s+)?void\s+/, "");
  out = withoutParameters(out);
  out = out.replaceAll("(anonymous namespace)::", "").replaceAll("<unnamed>::", "");
  out = out.replace(/\b(?:at::native::|at::cuda::|c10::)/g, "");
  return out === "" ? name : out;
}

// `f<a(b)>(c)` without the `(c)`: the parameter list, if the name ends with one.
function withoutParameters(name: string): string {
  const end = name.replace(/\s+const$/, "");
  if (!end.endsWith(")")) return name;
  let depth = 0;
  for (let i = end.length - 1; i >= 0; --i) {
    if (end[i] === ")") depth += 1;
    else if (end[i] === "(" && --depth === 0) return i > 0 && end[i - 1] !== ":" ? end.slice(0, i) : name;
  }
  return name;
}

// At most `length` characters, without the middle: kernels differ at both ends of their names.
export function truncateMiddle(text: string, length: number): string {
  if (text.length <= length) return text;
  const head = Math.ceil((length - 1) * 0.6);
  return `${text.slice(0, head)}…${text.slice(text.length - (length - 1 - head))}`;
}
