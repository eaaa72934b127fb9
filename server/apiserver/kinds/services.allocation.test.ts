import { describe, expect, it } from 'vitest';
import type { Service, UnstructuredObject } from '#server/kube';
import { contextOf, created, facilities, kindOf, refusalOf, serviceOf, updated } from './testing/context.ts';

const specOf = (object: UnstructuredObject): Service['spec'] => (object as unknown as Service).spec;
const setSpec =
  (change: Partial<Service['spec']>) =>
  (object: UnstructuredObject): void =>
    void Object.assign(object.spec as object, structuredClone(change));

describe('addresses and ports of Services', () => {
  it('are refused when somebody has them, and stay with whoever has them', async () => {
    const server = facilities();
    await created(
      serviceOf({ type: 'NodePort', clusterIP: '10.96.0.9', ports: [{ port: 80, nodePort: 30080 }] }),
      server,
    );
    for (let attempt = 0; attempt < 2; attempt++) {
      expect(
        await refusalOf(() => created(serviceOf({ clusterIP: '10.96.0.9' }, { name: 'b' }), server)),
      ).toBe(
        'Service "b" is invalid: spec.clusterIPs: Invalid value: ["10.96.0.9"]: failed to allocate IP 10.96.0.9: provided IP is already allocated',
      );
      const twin = serviceOf({ type: 'NodePort', ports: [{ port: 80, nodePort: 30080 }] }, { name: 'b' });
      expect(await refusalOf(() => created(twin, server))).toBe(
        'Service "b" is invalid: spec.ports[0].nodePort: Invalid value: 30080: provided port is already allocated',
      );
    }
  });

  it('go back when the create fails later', async () => {
    const server = facilities();
    const refused = serviceOf({ clusterIP: '10.96.0.9', sessionAffinity: 'Sticky' });
    await refusalOf(() => created(refused, server));
    expect(server.allocators.clusterIp.claim('10.96.0.9')).toBe('ok');
  });

  it('go back when the Service is deleted', async () => {
    const server = facilities();
    const service = await created(serviceOf({ type: 'NodePort' }), server);
    const { clusterIP = '', ports = [] } = specOf(service);
    kindOf(service).strategy.release?.(service, contextOf(server));
    expect(server.allocators.clusterIp.claim(clusterIP)).toBe('ok');
    expect(server.allocators.nodePort.claim(ports[0]?.nodePort ?? 0)).toBe('ok');
  });

  it('ClusterIP to NodePort takes a port, back again gives it back', async () => {
    const server = facilities();
    const first = await created(serviceOf(), server);
    const open = await updated(first, setSpec({ type: 'NodePort' }), server);
    const port = specOf(open).ports?.[0]?.nodePort ?? 0;
    expect(specOf(open)).toMatchObject({
      clusterIP: specOf(first).clusterIP,
      externalTrafficPolicy: 'Cluster',
    });
    expect(port).toBeGreaterThanOrEqual(30000);
    const closed = await updated(open, setSpec({ type: 'ClusterIP' }), server);
    expect(specOf(closed)).toEqual(specOf(first));
    expect(server.allocators.nodePort.claim(port)).toBe('ok');
  });

  it('to ExternalName gives all back, from it takes a new address', async () => {
    const server = facilities();
    const first = await created(serviceOf({ type: 'NodePort' }), server);
    const alias = await updated(
      first,
      setSpec({ type: 'ExternalName', externalName: 'example.com' }),
      server,
    );
    expect(specOf(alias)).toEqual({
      externalName: 'example.com',
      ports: [{ port: 80, protocol: 'TCP', targetPort: 80 }],
      sessionAffinity: 'None',
      type: 'ExternalName',
    });
    expect(server.allocators.clusterIp.claim(specOf(first).clusterIP ?? '')).toBe('ok');
    const back = await updated(alias, setSpec({ type: 'ClusterIP' }), server);
    expect(specOf(back)).toMatchObject({
      clusterIP: expect.stringMatching(/^10\.96\./),
      ipFamilies: ['IPv4'],
    });
  });

  it('LoadBalancer with Local traffic has a health check port of its own, as long as it is so', async () => {
    const server = facilities();
    const local = await created(serviceOf({ type: 'LoadBalancer', externalTrafficPolicy: 'Local' }), server);
    const port = specOf(local).healthCheckNodePort ?? 0;
    expect(port).toBeGreaterThanOrEqual(30000);
    const anywhere = await updated(local, setSpec({ externalTrafficPolicy: 'Cluster' }), server);
    expect(specOf(anywhere).healthCheckNodePort).toBeUndefined();
    expect(server.allocators.nodePort.claim(port)).toBe('ok');
  });

  it('no node ports when the balancer needs none', async () => {
    const service = await created(serviceOf({ type: 'LoadBalancer', allocateLoadBalancerNodePorts: false }));
    expect(specOf(service).ports).toEqual([{ port: 80, protocol: 'TCP', targetPort: 80 }]);
  });

  it('an object that does not mention what the server chose keeps it', async () => {
    const server = facilities();
    const first = await created(serviceOf({ type: 'NodePort' }), server);
    const replaced = await updated(
      first,
      (object) => {
        object.spec = { type: 'NodePort', ports: [{ port: 81 }] };
      },
      server,
    );
    expect(specOf(replaced)).toMatchObject({
      clusterIP: specOf(first).clusterIP,
      ports: [{ port: 81, nodePort: specOf(first).ports?.[0]?.nodePort }],
    });
  });

  it('TCP and UDP of one port share a node port', async () => {
    const ports = [
      { name: 'dns', port: 53, protocol: 'UDP' },
      { name: 'dns-tcp', port: 53, protocol: 'TCP' },
    ];
    const given = specOf(await created(serviceOf({ type: 'NodePort', ports }))).ports ?? [];
    expect(given[0]?.nodePort).toBe(given[1]?.nodePort);
  });

  it('a failed update gives back what it took', async () => {
    const server = facilities([], { nodePortRange: '30000-30000' });
    const first = await created(serviceOf(), server);
    await refusalOf(() => updated(first, setSpec({ type: 'NodePort', sessionAffinity: 'Sticky' }), server));
    expect(server.allocators.nodePort.allocate()).toBe(30000);
  });
});
