// For an effect or component that follows signals whose values it does not use itself.

import type { ReadonlySignal } from "@preact/signals";

// The effect or component that calls this runs again when one of the signals changes.
export function dependsOn(...signals: readonly ReadonlySignal<unknown>[]): void {
  signals.forEach((signal) => signal.value);
}
