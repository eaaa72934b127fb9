import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

/** What the API reference says of a type and its fields. */
export interface TypeDescription {
  text: string;
  fields: ReadonlyMap<string, string>;
}

const NOTHING: TypeDescription = { text: '', fields: new Map() };

/**
 * The description of a built-in type (`core/v1#Pod`), from the comments of @kubernetes/client-node's declarations; read
 * on every call, as callers keep what they make of it. Empty where the package has none.
 */
export function describeType(typeName: string): TypeDescription {
  const file = declarationOf(typeName);
  return file ? parseDeclaration(readFileSync(file, 'utf8')) : NOTHING;
}

let modelsDirectory: string | undefined;

function models(): string {
  modelsDirectory ??= join(
    dirname(createRequire(import.meta.url).resolve('@kubernetes/client-node')),
    'gen',
    'models',
  );
  return modelsDirectory;
}

/** Types of one name in several groups carry their group: CoreV1Event, EventsV1Event. */
function declarationOf(typeName: string): string | undefined {
  const [, group = '', version = '', name = ''] = /^(\w+)\/(\w+)#(\w+)$/.exec(typeName) ?? [];
  const plain = `V${version.slice(1)}${name}`;
  const qualified = `${group.charAt(0).toUpperCase()}${group.slice(1)}${plain}`;
  return [qualified, plain].map((one) => join(models(), `${one}.d.ts`)).find((path) => existsSync(path));
}

/**
 * Reads line by line: a comment belongs to the very next line of code. (A field may have no comment, and a comment may
 * hold anything, so a pattern over the whole text gives fields the comments of others.)
 */
export function parseDeclaration(source: string): TypeDescription {
  const fields = new Map<string, string>();
  let text = '';
  let comment: string[] | undefined;
  let inside = false;
  for (const line of source.split('\n')) {
    const trimmed = line.trim();
    if (trimmed === '/**') {
      comment = [];
      inside = true;
    } else if (inside && trimmed === '*/') {
      inside = false;
    } else if (inside) {
      comment?.push(trimmed.replace(/^\* ?/, ''));
    } else if (trimmed) {
      const field = /^'([^']+)'\??:/.exec(trimmed)?.[1];
      if (comment && field !== undefined) fields.set(field, unescape(comment));
      else if (comment && trimmed.startsWith('export declare class')) text = unescape(comment);
      comment = undefined;
    }
  }
  return { text, fields };
}

function unescape(lines: readonly string[]): string {
  return lines
    .join('\n')
    .replaceAll('*_/', '*/')
    .replaceAll('/_*', '/*')
    .replace(/\\(['"`\\])/g, '$1')
    .trim();
}
