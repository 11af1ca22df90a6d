// Whether a key press belongs to a field rather than to the page.

export function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && (/^(input|textarea|select)$/i.test(target.tagName) || target.isContentEditable)
  );
}
