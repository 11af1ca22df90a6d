// Commands that the page shows, to be pasted into a shell.

// The text as one word of a POSIX shell: in single quotes unless every character stands for itself there (as src/base/shell_quoted.h).
export function shellQuoted(text: string): string {
  if (/^[\w@%+=:,./-]+$/.test(text)) return text;
  return `'${text.replaceAll("'", "'\\''")}'`;
}
