import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { createManualClock, createSeededIds, silentLogger } from '#server/base';
import { createFakeBackend } from '#server/client/testing';
import { machineDeployments } from '#server/cluster-api';
import { deployments, namespaces } from '#server/kube';
import { addOnFiles } from './add-ons.ts';
import { birthManifests } from './manifests.ts';
import { createTenants } from './tenants.ts';

const setup = () => {
  const clock = createManualClock();
  const backend = createFakeBackend({ clock });
  const management = backend.client();
  const tenants = (seed: number) =>
    createTenants({ management, clock, ids: createSeededIds(seed), log: silentLogger });
  return { management, tenants, backend };
};

describe('tenants', () => {
  it('finds a tenant again by its namespace, whoever asks', async () => {
    const { tenants } = setup();
    const first = await tenants(1).ensure('solo');
    expect(first).toEqual({
      user: 'solo',
      namespace: expect.stringMatching(/^handson-solo-\w{5}$/) as string,
      cluster: expect.stringMatching(/^tenant-\w{5}$/) as string,
    });
    expect(await tenants(2).ensure('solo')).toEqual(first);
    expect((await tenants(3).ensure('other')).namespace).not.toBe(first.namespace);
  });

  it('completes a birth that was cut off, and leaves what the user changed', async () => {
    const { management, tenants } = setup();
    const tenant = await tenants(1).ensure('solo');
    const ccm = { namespace: tenant.namespace, name: 'kubevirt-cloud-controller-manager' };
    await management.patch(deployments, ccm, { type: 'merge', body: { spec: { replicas: 0 } } });
    await management.delete(machineDeployments, {
      namespace: tenant.namespace,
      name: `${tenant.cluster}-md-0`,
    });
    await tenants(2).ensure('solo');
    expect((await management.get(deployments, ccm)).spec.replicas).toBe(0);
    expect(
      (
        await management.get(machineDeployments, {
          namespace: tenant.namespace,
          name: `${tenant.cluster}-md-0`,
        })
      ).spec.replicas,
    ).toBe(0);
  });

  it('begins anew when the namespace is on its way out', async () => {
    const { management, tenants } = setup();
    const tenant = await tenants(1).ensure('solo');
    await management.patch(
      namespaces,
      { name: tenant.namespace },
      { type: 'merge', body: { metadata: { finalizers: ['test/hold'] } } },
    );
    await management.delete(namespaces, { name: tenant.namespace });
    expect((await tenants(2).ensure('solo')).namespace).not.toBe(tenant.namespace);
  });

  it('keeps every object in the namespace of its user', () => {
    const names = { user: 'u', namespace: 'handson-u', cluster: 'tenant-x' };
    const objects = birthManifests(names);
    const outside = objects
      .filter((object) => object.metadata.namespace !== names.namespace)
      .map((object) => object.kind);
    expect(outside).toEqual(['Namespace']);
  });

  it('writes add-ons that any YAML reader takes', () => {
    for (const file of addOnFiles()) {
      const documents = parseAllDocuments(file.content).map(
        (document) => document.toJS({ maxAliasCount: 0 }) as { kind: string },
      );
      expect(documents.every((document) => typeof document.kind === 'string')).toBe(true);
    }
  });
});
