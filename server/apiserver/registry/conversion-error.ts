import type { ScalarSchema, TypeSchema } from '#server/kube';
import { isRecord } from '../json.ts';

/**
 * What is wrong with a strategically patched object, in the words of the converter that fills Go structs from maps;
 * undefined when it finds nothing wrong. Numbers of the wrong size, times and quantities are left to the decoder.
 * Models runtime.DefaultUnstructuredConverter.FromUnstructured of k8s.io/apimachinery.
 */
export function conversionError(value: unknown, type: TypeSchema): string | undefined {
  if (value === null || value === undefined) return undefined;
  switch (type.kind) {
    case 'any':
      return undefined;
    case 'scalar':
      return scalarError(value, type);
    case 'list':
      if (!Array.isArray(value)) return `cannot restore slice from ${goKind(value)}`;
      return firstError(value.map((item): [unknown, TypeSchema] => [item, type.items]));
    case 'map':
      if (!isRecord(value)) return `cannot restore map from ${goKind(value)}`;
      return firstError(Object.values(value).map((item): [unknown, TypeSchema] => [item, type.values]));
    case 'struct':
      if (!isRecord(value)) return `cannot restore struct from: ${goKind(value)}`;
      return firstError(
        Object.entries(value).flatMap(([key, member]): [unknown, TypeSchema][] => {
          const field = type.fields.get(key);
          return field ? [[member, field.type]] : [];
        }),
      );
  }
}

function firstError(pairs: readonly [unknown, TypeSchema][]): string | undefined {
  for (const [value, type] of pairs) {
    const error = conversionError(value, type);
    if (error) return error;
  }
  return undefined;
}

const GO_KINDS: Readonly<Partial<Record<ScalarSchema['scalar'], string>>> = {
  string: 'string',
  boolean: 'bool',
  int32: 'int32',
  int64: 'int64',
  number: 'float64',
};

function scalarError(value: unknown, type: ScalarSchema): string | undefined {
  const wanted = GO_KINDS[type.scalar];
  const given = goKind(value);
  if (wanted === undefined || wanted === given) return undefined;
  const numeric = wanted !== 'string' && wanted !== 'bool';
  if (numeric && given === 'int64') return undefined;
  // Go converts between these kinds, so they are tried and refused; others are not even tried.
  const tried = (wanted === 'string' && given === 'int64') || (numeric && given === 'float64');
  return tried ? `cannot convert ${given} to ${wanted}` : `unrecognized type: ${wanted}`;
}

function goKind(value: unknown): string {
  if (Array.isArray(value)) return 'slice';
  switch (typeof value) {
    case 'string':
      return 'string';
    case 'boolean':
      return 'bool';
    case 'number':
      return Number.isInteger(value) ? 'int64' : 'float64';
    default:
      return 'map';
  }
}
