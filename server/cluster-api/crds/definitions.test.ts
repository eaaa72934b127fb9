import { describe, expect, it } from 'vitest';
import { kubeVirtDefinitions } from '#server/clouds/kubevirt';
import type { JsonSchema } from '#server/kube';
import { clusterApiResources } from '../resources.ts';
import { clusterApiDefinitions } from './definitions.ts';

/** Paths at which a schema is not structural: no type where there must be one. */
function flaws(schema: JsonSchema, path: string): string[] {
  const typed = schema.type !== undefined || schema['x-kubernetes-int-or-string'] === true;
  const below = [
    ...Object.entries(schema.properties ?? {}).flatMap(([name, part]) => flaws(part, `${path}.${name}`)),
    ...(schema.items ? flaws(schema.items, `${path}[]`) : []),
    ...(typeof schema.additionalProperties === 'object'
      ? flaws(schema.additionalProperties, `${path}{}`)
      : []),
  ];
  const both =
    schema.properties && schema.additionalProperties ? [`${path}: properties and additionalProperties`] : [];
  return [...(typed ? [] : [`${path}: no type`]), ...both, ...below];
}

describe('custom resource definitions', () => {
  it('have structural schemas', () => {
    for (const { metadata, spec } of [...clusterApiDefinitions(), ...kubeVirtDefinitions()]) {
      for (const version of spec.versions)
        expect(flaws(version.schema?.openAPIV3Schema ?? {}, metadata.name)).toEqual([]);
    }
  });

  it('are there for every kind of the room, in the version its controllers use', () => {
    const defined = clusterApiDefinitions().map(
      ({ spec }) => `${spec.names.plural}.${spec.group}/${spec.versions[0]?.name ?? ''}`,
    );
    expect(defined.sort()).toEqual(
      clusterApiResources.map(({ plural, group, version }) => `${plural}.${group}/${version}`).sort(),
    );
  });

  it('offer scaling where kubectl scale is used', () => {
    const scalable = clusterApiDefinitions()
      .filter(({ spec }) => spec.versions[0]?.subresources?.scale)
      .map(({ spec }) => spec.names.shortNames?.[0]);
    expect(scalable.sort()).toEqual(['kcp', 'md', 'ms']);
  });
});
