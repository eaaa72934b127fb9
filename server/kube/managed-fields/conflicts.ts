import { failure, type StatusError } from '../status-error.ts';
import { eachPath } from './field-set.ts';
import type { Manager } from './managers.ts';
import type { Conflict } from './ownership.ts';
import { formatPath } from './path-element.ts';

/** The refusal of an apply that would take fields from others. Models NewConflictError of managedfields. */
export function applyConflict(conflicts: readonly Conflict[]): StatusError {
  const found = conflicts.flatMap(({ manager, set }) => {
    const paths: string[] = [];
    eachPath(set, (path) => paths.push(formatPath(path)));
    return paths.map((path) => ({ who: describe(manager), path }));
  });
  found.sort((a, b) => (a.who < b.who ? -1 : a.who > b.who ? 1 : 0));
  const causes = found.map(({ who, path }) => ({
    reason: 'FieldManagerConflict',
    message: `conflict with ${who}`,
    field: path,
  }));
  return failure(409, 'Conflict', messageOf(found), { causes });
}

function messageOf(found: readonly { who: string; path: string }[]): string {
  const [first] = found;
  if (found.length === 1 && first)
    return `Apply failed with 1 conflict: conflict with ${first.who}: ${first.path}`;
  const lines: string[] = [];
  let last = '';
  for (const { who, path } of found) {
    if (who !== last) lines.push(`conflicts with ${who}:`);
    last = who;
    lines.push(`- ${path}`);
  }
  return `Apply failed with ${found.length} conflicts: ${lines.join('\n')}`;
}

function describe(manager: Manager): string {
  const name = JSON.stringify(manager.manager);
  const where = manager.subresource
    ? `${name} with subresource ${JSON.stringify(manager.subresource)}`
    : name;
  return manager.operation === 'Update' ? `${where} using ${manager.apiVersion}` : where;
}
