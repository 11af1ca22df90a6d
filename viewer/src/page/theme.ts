// Light and dark: the system's choice unless the user made one. The choice is kept in this browser.

import { effect, signal } from "@preact/signals";

export type Theme = "light" | "dark";

const kKey = "firelane-theme";

function remembered(): Theme | null {
  try {
    const value = localStorage.getItem(kKey);
    return value === "light" || value === "dark" ? value : null;
  } catch {
    return null;
  }
}

const dark = window.matchMedia("(prefers-color-scheme: dark)");
const chosen = signal<Theme | null>(remembered());
const system = signal<Theme>(dark.matches ? "dark" : "light");
dark.addEventListener("change", () => (system.value = dark.matches ? "dark" : "light"));

// Read it where colours are computed rather than taken from CSS (canvas, charts): it is a signal.
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
    // Not remembered then.
  }
}

// The value of a CSS variable now: cssColor("--accent").
export function cssColor(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
