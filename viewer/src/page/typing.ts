// Tells key presses in a text field from keyboard shortcuts.

export function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && (/^(input|textarea|select)$/i.test(target.tagName) || target.isContentEditable)
  );
}
