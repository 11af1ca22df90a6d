// Light or dark: the system's setting, unless the user chose one. The choice is stored in this browser.

import { effect, signal } from "@preact/signals";

export type Theme = "light" | "dark";

const kKey = "firelane-theme";

function storedTheme(): Theme | null {
  try {
    const value = localStorage.getItem(kKey);
    return value === "light" || value === "dark" ? value : null;
  } catch {
    return null;
  }
}

const dark = window.matchMedia("(prefers-color-scheme: dark)");
const chosen = signal<Theme | null>(storedTheme());
const system = signal<Theme>(dark.matches ? "dark" : "light");
dark.addEventListener("change", () => (system.value = dark.matches ? "dark" : "light"));

// A signal, for what computes its colors instead of taking them from CSS (canvas, charts).
export const theme = signal<Theme>(chosen.value ?? system.value);

effect(() => {
  theme.value = chosen.value ?? system.value;
  document.documentElement.dataset.theme = theme.value;
});

export function toggleTheme(): void {
  chosen.value = theme.value === "dark" ? "light" : "dark";
  try {
    localStorage.setItem(kKey, chosen.value);
  } catch {
    // Storage is disabled: the choice lasts until the page is reloaded.
  }
}

// The current value of a CSS variable: cssColor("--accent").
export function cssColor(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
