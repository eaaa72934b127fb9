import type { CustomResourceDefinitionVersion } from '#server/kube';
import type { Column } from '../kind.ts';
import { ageColumn, nameColumn, since } from '../kinds/cells.ts';
import { compileJsonPath } from './json-path.ts';

type PrinterColumn = NonNullable<CustomResourceDefinitionVersion['additionalPrinterColumns']>[number];

/**
 * The table of a custom resource: its name, then the columns of the definition, or its age when there are none.
 * Models apiextensions-apiserver/pkg/registry/customresource/tableconvertor.
 */
export function printerColumns(version: CustomResourceDefinitionVersion): Column[] {
  const own = version.additionalPrinterColumns ?? [];
  if (own.length === 0) return [nameColumn, { ...ageColumn, type: 'date' }];
  return [nameColumn, ...own.map(columnOf)];
}

function columnOf(definition: PrinterColumn): Column {
  const find = compileJsonPath(definition.jsonPath);
  const type = definition.type as Column['type'];
  return {
    name: definition.name,
    type,
    ...(definition.format ? { format: definition.format } : {}),
    description:
      definition.description ||
      `Custom resource definition column (in JSONPath format): ${definition.jsonPath}`,
    priority: definition.priority ?? 0,
    cell(object, now) {
      const value = find?.(object)[0];
      return value === undefined || value === null ? null : cellOf(value, type, now);
    },
  };
}

function cellOf(value: unknown, type: Column['type'], now: number): string | number | boolean | null {
  switch (type) {
    case 'string':
      return typeof value === 'string' ? value : JSON.stringify(value);
    case 'integer':
      return typeof value === 'number' ? Math.trunc(value) : null;
    case 'number':
      return typeof value === 'number' ? value : null;
    case 'boolean':
      return typeof value === 'boolean' ? value : null;
    case 'date':
      if (typeof value !== 'string') return null;
      return Number.isNaN(Date.parse(value)) ? '<invalid>' : since(value, now);
  }
}
