// Finds out where this page's answers come from. The only file in data/ that uses the document.

import { decodeAnswer } from "./decode";
import { HttpSource, type Source, storedAnswers, StoredSource } from "./source";

const kTokenKey = "firelane-token";

export function openSource(): Source {
  const stored = document.getElementById("firelane-answers")?.textContent;
  if (stored) return new StoredSource(decodeAnswer("report", storedAnswers, JSON.parse(stored)));
  return new HttpSource(new URL(".", document.baseURI).href, token());
}

// From the URL, where it stays so that a reload works; otherwise the one that this tab was last opened with.
function token(): string {
  const given = new URL(document.baseURI).searchParams.get("token");
  try {
    if (given) sessionStorage.setItem(kTokenKey, given);
    return given ?? sessionStorage.getItem(kTokenKey) ?? "";
  } catch {
    return given ?? ""; // storage is disabled
  }
}
