import type { KubeObject, LabelSelector, UnstructuredObject } from '#server/kube';
import { formatLabelSelector } from '#server/kube';
import { as, type Column } from '../kind.ts';

type Cell = Column['cell'];

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const YEAR_IN_HOURS = 24 * 365;

function twoUnits(major: number, majorUnit: string, minor: number, minorUnit: string): string {
  return minor === 0 ? `${major}${majorUnit}` : `${major}${majorUnit}${minor}${minorUnit}`;
}

/** A length of time the way tables show it: two units while it is short, one when it is long. `milliseconds` may be
 * negative: more than a second in the future is `<invalid>`. Models k8s.io/apimachinery/pkg/util/duration.HumanDuration. */
export function humanDuration(milliseconds: number): string {
  const seconds = Math.trunc(milliseconds / 1000);
  if (seconds < -1) return '<invalid>';
  if (seconds < 0) return '0s';
  if (seconds < 2 * MINUTE) return `${seconds}s`;
  const minutes = Math.floor(seconds / MINUTE);
  if (minutes < 10) return twoUnits(minutes, 'm', seconds % MINUTE, 's');
  if (minutes < 180) return `${minutes}m`;
  const hours = Math.floor(seconds / HOUR);
  if (hours < 8) return twoUnits(hours, 'h', minutes % 60, 'm');
  if (hours < 48) return `${hours}h`;
  const days = Math.floor(hours / 24);
  if (hours < 192) return twoUnits(days, 'd', hours % 24, 'h');
  if (hours < 2 * YEAR_IN_HOURS) return `${days}d`;
  const years = Math.floor(hours / YEAR_IN_HOURS);
  if (hours < 8 * YEAR_IN_HOURS) return twoUnits(years, 'y', days % 365, 'd');
  return `${years}y`;
}

/** How long ago an RFC 3339 time was; `<unknown>` for none. */
export function since(time: string | null | undefined, now: number): string {
  return time ? humanDuration(now - Date.parse(time)) : '<unknown>';
}

/** `a=1,b=2` in key order, `<none>` when empty. Models labels.FormatLabels. */
export function formatLabels(labels: Record<string, string> | undefined): string {
  const pairs = Object.entries(labels ?? {}).map(([key, value]) => `${key}=${value}`);
  return pairs.length === 0 ? '<none>' : pairs.sort().join(',');
}

/** A label selector's text, `<none>` when it selects everything. */
export function selectorText(selector: LabelSelector | undefined): string {
  return selector ? formatLabelSelector(selector) || '<none>' : '<none>';
}

/** Joins what there is of `items`, at most three, and counts the rest. */
export function firstThree(items: readonly string[], none: string): string {
  const shown = items.slice(0, 3).join(',');
  if (items.length > 3) return `${shown} + ${items.length - 3} more...`;
  return shown || none;
}

export function column(name: string, description: string, cell: Cell, options: Partial<Column> = {}): Column {
  return { name, type: 'string', description, priority: 0, cell, ...options };
}

export function integerColumn(name: string, description: string, cell: Cell): Column {
  return column(name, description, cell, { type: 'integer' });
}

/** Shown with `-o wide` only. */
export function wideColumn(
  name: string,
  description: string,
  cell: Cell,
  options: Partial<Column> = {},
): Column {
  return column(name, description, cell, { priority: 1, ...options });
}

export const nameColumn: Column = column(
  'Name',
  'The name, unique among its kind in the namespace.',
  (object) => object.metadata.name,
  {
    format: 'name',
  },
);

export const ageColumn: Column = column('Age', 'How long ago the object was created.', (object, now) =>
  since(object.metadata.creationTimestamp, now),
);

/** For kinds whose table shows the time of creation instead of an age. */
export const createdAtColumn: Column = column(
  'Created At',
  'When the object was created.',
  (object) => object.metadata.creationTimestamp ?? 'null',
  { type: 'string', format: 'date-time' },
);

interface WithTemplate extends KubeObject {
  spec: {
    template: { spec?: { containers?: { name: string; image?: string }[] } };
    selector?: LabelSelector;
  };
}

/** Containers, Images and Selector of a workload, wide. */
export function templateColumns(): Column[] {
  const containers = (object: UnstructuredObject): { name: string; image?: string }[] =>
    as<WithTemplate>(object).spec.template.spec?.containers ?? [];
  return [
    wideColumn('Containers', 'The names of the containers of the template.', (object) =>
      containers(object)
        .map((c) => c.name)
        .join(','),
    ),
    wideColumn('Images', 'The images of the containers of the template.', (object) =>
      containers(object)
        .map((c) => c.image ?? '')
        .join(','),
    ),
    wideColumn('Selector', 'Which pods belong to it.', (object) =>
      selectorText(as<WithTemplate>(object).spec.selector),
    ),
  ];
}
