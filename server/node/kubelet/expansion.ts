/**
 * `$(VAR)` in commands and values: replaced when the variable is known, left as it is when not; `$$(VAR)` is the literal
 * `$(VAR)`. Models third_party/forked/golang/expansion.
 */
export function expandReferences(text: string, env: Readonly<Record<string, string>>): string {
  let out = '';
  for (let at = 0; at < text.length; ) {
    const char = text[at] ?? '';
    if (char !== '$' || at + 1 >= text.length) {
      out += char;
      at += 1;
      continue;
    }
    const next = text[at + 1] ?? '';
    if (next === '$') {
      out += '$';
      at += 2;
      continue;
    }
    const close = next === '(' ? text.indexOf(')', at + 2) : -1;
    if (close < 0) {
      out += `$${next}`;
      at += 2;
      continue;
    }
    const name = text.slice(at + 2, close);
    out += env[name] ?? `$(${name})`;
    at = close + 1;
  }
  return out;
}
