import { get as httpGet } from 'node:http';
import { describe, expect, it } from 'vitest';
import { createManualClock, type ManualClock } from '#server/base';
import { createFakeBackend, type FakeBackend } from '#server/client/testing';
import { virtualMachineInstances } from '#server/clouds/kubevirt';
import { events, forbidden, leases, nodes } from '#server/kube';
import { internal, named, nodeDraft } from '../testing/harness.ts';
import { INFRA, kubeconfig, type ProgramHarnessOptions, startProgram, TENANT } from '../testing/process.ts';

const ARGS = [
  '--cloud-provider=kubevirt',
  '--cloud-config=/etc/cloud/cloud-config',
  '--kubeconfig=/etc/kubernetes/kubeconfig/value',
];
const ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';
const FILES = {
  '/etc/cloud/cloud-config': 'namespace: handson-user\ninstancesV2: {zoneAndRegionEnabled: false}\n',
  '/etc/kubernetes/kubeconfig/value': kubeconfig(TENANT),
  [`${ACCOUNT}/token`]: 'token-1',
};
const NAMED_INFRA = 'https://infra:6443';
const ENV = { KUBERNETES_SERVICE_HOST: '10.96.0.1', KUBERNETES_SERVICE_PORT: '443', HOSTNAME: 'ccm-1' };
const LEASE = { namespace: 'kube-system', name: 'cloud-controller-manager' };

interface World {
  clock: ManualClock;
  tenant: FakeBackend;
  infra: FakeBackend;
  start(options?: Partial<ProgramHarnessOptions>): ReturnType<typeof startProgram>;
}

function createWorld(): World {
  const clock = createManualClock();
  const [tenant, infra] = [createFakeBackend({ clock }), createFakeBackend({ clock })];
  return {
    clock,
    tenant,
    infra,
    start: (options = {}) =>
      startProgram({
        args: ARGS,
        files: FILES,
        env: ENV,
        backends: { [TENANT]: tenant, [INFRA]: infra, [NAMED_INFRA]: infra },
        clock,
        ...options,
      }),
  };
}

async function addMachine({ infra }: World, name: string): Promise<void> {
  await infra.client().create(virtualMachineInstances, {
    metadata: { name, namespace: 'handson-user' },
    spec: { domain: { devices: {} } },
    status: { phase: 'Running', interfaces: [{ name: 'default', ipAddresses: ['10.244.0.20'] }] },
  });
}

describe('the command', () => {
  it('leads at once and initialises a node of the tenant from its machine in the infrastructure cluster', async () => {
    const world = createWorld();
    await addMachine(world, 'worker-1');
    const program = world.start();
    await world.tenant.client().create(nodes, nodeDraft('worker-1'));
    await world.clock.advance(0);
    const node = await world.tenant.client().get(nodes, { name: 'worker-1' });
    expect(node.spec).toEqual({ providerID: 'kubevirt://worker-1' });
    expect(node.status?.addresses).toEqual([
      internal('10.244.0.20'),
      { type: 'Hostname', address: 'worker-1' },
    ]);
    const writes = world.tenant.requests.filter(
      ({ verb, userAgent }) => !['get', 'list'].includes(verb) && userAgent !== 'test/v0',
    );
    expect(writes.map(named).sort()).toEqual([
      'create events',
      'create events',
      'create leases',
      'patch nodes/worker-1/status',
      'update leases/cloud-controller-manager',
      'update nodes/worker-1',
    ]);
    expect(new Set(writes.map(({ query }) => query['fieldManager']))).toEqual(
      new Set(['kubevirt-cloud-controller-manager']),
    );
    const lease = await world.tenant.client().get(leases, LEASE);
    expect(lease.spec?.holderIdentity).toMatch(/^ccm-1_[0-9a-f-]{36}$/);
    const [election] = (await world.tenant.client().list(events, { namespace: 'kube-system' })).items;
    expect(election).toMatchObject({
      involvedObject: { kind: 'Lease', name: 'cloud-controller-manager' },
      reason: 'LeaderElection',
      message: `${lease.spec?.holderIdentity} became leader`,
      source: { component: 'cloud-controller-manager' },
    });
    const agent = 'kubevirt-cloud-controller-manager/v0.6.0 (linux/arm64) kubernetes/$Format';
    expect(program.agents).toContain(`${TENANT} secret ${agent}/node-controller`);
    expect(program.agents).toContain(`${INFRA} token-1 ${agent}`);
    program.signal('SIGTERM');
    expect(await program.exited).toBe(0);
    expect((await world.tenant.client().get(leases, LEASE)).spec).toEqual(lease.spec);
    expect(world.clock.pending).toBe(0);
    expect(world.tenant.watches).toBe(0);
  });

  it('says in its log what it does and what this version does not have', async () => {
    const world = createWorld();
    const program = world.start({ args: [...ARGS, '--controllers=*,-node-route-controller'] });
    await world.clock.advance(0);
    const lines = program.stderr.lines().map((line) => line.replace(/ccm-1_[0-9a-f-]{36}/, '<id>'));
    expect(lines).toEqual([
      'I serving.go:53] Serving insecurely on [::]:10258',
      'I controllermanager.go:160] Version: v0.6.0',
      'W controllers.ts:1] This version does not have these controllers and does not start them: "cloud-node-lifecycle-controller", "kubevirt_eps_controller", "service-lb-controller"',
      'I leaderelection.go:257] attempting to acquire leader lease kube-system/cloud-controller-manager...',
      'I event.go:389] "Event occurred" object="kube-system/cloud-controller-manager" fieldPath="" kind="Lease" apiVersion="coordination.k8s.io/v1" type="Normal" reason="LeaderElection" message="<id> became leader"',
      'I leaderelection.go:271] successfully acquired lease kube-system/cloud-controller-manager',
      'I node_controller.go:176] Sending events to api server.',
      'I node_controller.go:185] Waiting for informer caches to sync',
      'I controllermanager.go:329] Started "cloud-node-controller"',
      'W controllermanager.go:317] Skipping "cloud-node-lifecycle-controller"',
      'W controllermanager.go:317] Skipping "kubevirt_eps_controller"',
      'W controllermanager.go:306] "node-route-controller" is disabled',
      'W controllermanager.go:317] Skipping "service-lb-controller"',
    ]);
    expect(program.stderr.text()).toMatch(/^I0101 00:00:00\.000000 {7}1 serving\.go:53\] Serving/);
    program.signal('SIGINT');
    expect(await program.exited).toBe(0);
  });

  it.each<{ row: string; args: string[]; code: number; stderr: RegExp | string }>([
    {
      row: 'an unknown flag',
      args: ['--nonsense'],
      code: 1,
      stderr: /^Usage:\n {2}cloud-controller-manager \[flags\]\n[^]*\n\nError: unknown flag: --nonsense\n$/,
    },
    {
      row: 'an argument',
      args: ['serve', 'me'],
      code: 1,
      stderr: 'Error: "cloud-controller-manager" does not take any arguments, got ["serve" "me"]\n',
    },
    {
      row: 'no provider',
      args: [],
      code: 1,
      stderr:
        /^--cloud-provider cannot be empty\nE.* run\.go:72\] "command failed" err="--cloud-provider cannot be empty"\n$/,
    },
    {
      row: 'an unknown controller',
      args: [...ARGS, '--controllers=-route'],
      code: 1,
      stderr: /^"route" is not in the list of known controllers\n/,
    },
    {
      row: 'an unknown provider',
      args: ['--cloud-provider=aws', ARGS[2] ?? ''],
      code: 255,
      stderr: /F.* main\.go:71\] Cloud provider could not be initialized: unknown cloud provider "aws"\n/,
    },
    {
      row: 'no provider at all',
      args: ['--cloud-provider=external', ARGS[2] ?? ''],
      code: 255,
      stderr: /Cloud provider is nil\n/,
    },
    {
      row: 'no cloud-config',
      args: ['--cloud-provider=kubevirt', ARGS[2] ?? ''],
      code: 255,
      stderr: /could not init cloud provider "kubevirt": No kubevirt cloud provider config file given\n/,
    },
    {
      row: 'a cloud-config that is not there',
      args: ['--cloud-provider=kubevirt', '--cloud-config=/nope', ARGS[2] ?? ''],
      code: 255,
      stderr: /Couldn't open cloud provider configuration \/nope: open \/nope: no such file or directory\n/,
    },
    {
      row: 'a kubeconfig that is not there',
      args: [...ARGS, '--kubeconfig=/nope'],
      code: 1,
      stderr: /^stat \/nope: no such file or directory\nE.*"command failed"/,
    },
    {
      row: 'a kubeconfig that is none',
      args: [...ARGS, '--kubeconfig=/etc/cloud/cloud-config'],
      code: 1,
      stderr: /^error loading config file "\/etc\/cloud\/cloud-config": kubeconfig: /,
    },
  ])('ends with $row', async ({ args, code, stderr }) => {
    const program = createWorld().start({ args });
    expect(await program.exited).toBe(code);
    if (typeof stderr === 'string') expect(program.stderr.text()).toBe(stderr);
    else expect(program.stderr.text()).toMatch(stderr);
  });

  it.each<{ row: string; config: string; message: string }>([
    {
      row: 'YAML of the wrong shape',
      config: 'instancesV2: {enabled: perhaps}',
      message: 'Failed to unmarshal cloud provider config: yaml: unmarshal errors:',
    },
    {
      row: 'an infra kubeconfig that is not there',
      config: 'kubeconfig: /nope',
      message: "Couldn't open infra-kubeconfig: open /nope: no such file or directory",
    },
    {
      row: 'an infra kubeconfig that is none',
      config: 'kubeconfig: /etc/cloud/cloud-config',
      message: 'kubeconfig: ',
    },
  ])('ends with a cloud-config that has $row', async ({ config, message }) => {
    const program = createWorld().start({ files: { ...FILES, '/etc/cloud/cloud-config': config } });
    expect(await program.exited).toBe(255);
    expect(program.stderr.text()).toContain(
      `Cloud provider could not be initialized: could not init cloud provider "kubevirt": ${message}`,
    );
  });

  it.each<{ row: string; context: string | undefined; config: string; expected: string }>([
    { row: 'the one of the cloud-config', context: 'other', config: 'namespace: mine', expected: 'mine' },
    { row: 'the one of the context', context: 'other', config: '', expected: 'other' },
    { row: '`default`', context: undefined, config: '', expected: 'default' },
  ])('looks for machines through the infra kubeconfig, in $row', async ({ context, config, expected }) => {
    const world = createWorld();
    await world.tenant.client().create(nodes, nodeDraft('a'));
    const program = world.start({
      files: {
        ...FILES,
        '/infra': kubeconfig(NAMED_INFRA, context),
        '/etc/cloud/cloud-config': `kubeconfig: /infra\n${config}\n`,
      },
    });
    await world.clock.advance(0);
    expect(world.infra.requests[0]).toMatchObject({ verb: 'get', name: 'a', namespace: expected });
    program.kill();
    expect(await program.exited).toBe(137);
  });

  it('follows the mounted token of the infrastructure cluster', async () => {
    const world = createWorld();
    await addMachine(world, 'a');
    const program = world.start();
    await world.clock.advance(0);
    program.files.writeFile(`${ACCOUNT}/token`, 'token-2');
    await world.clock.advance(60_000);
    await world.tenant.client().create(nodes, nodeDraft('a'));
    await world.clock.advance(0);
    expect(
      program.agents.filter((agent) => agent.startsWith(INFRA)).map((agent) => agent.split(' ')[1]),
    ).toEqual(['token-1', 'token-2']);
    program.signal('SIGTERM');
    await program.exited;
  });

  it('without kubeconfig serves the cluster it runs in', async () => {
    const world = createWorld();
    await world.infra.client().create(nodes, nodeDraft('a'));
    const program = world.start({
      args: ARGS.slice(0, 2),
      files: { ...FILES, '/etc/cloud/cloud-config': 'namespace: n' },
    });
    await world.clock.advance(0);
    expect(program.stderr.lines()[0]).toBe(
      'W client_config.go:667] Neither --kubeconfig nor --master was specified.  Using the inClusterConfig.  This might not work.',
    );
    expect(program.stderr.text()).toContain('Initializing node a with cloud provider');
    program.signal('SIGTERM');
    await program.exited;
  });

  it('with instances switched off starts nothing and leaves the taint', async () => {
    const world = createWorld();
    const program = world.start({
      files: { ...FILES, '/etc/cloud/cloud-config': 'instancesV2: {enabled: false}' },
    });
    await world.clock.advance(0);
    expect(program.stderr.lines()).toContain(
      'W core.go:53] failed to start cloud node controller: cloud provider does not support instances',
    );
    expect(program.stderr.lines()).toContain('W controllermanager.go:317] Skipping "cloud-node-controller"');
    program.signal('SIGTERM');
    await program.exited;
  });

  it('prints help and version', async () => {
    const help = createWorld().start({ args: ['--help'] });
    expect(await help.exited).toBe(0);
    expect(help.stdout.text()).toContain('--cloud-provider string\n');
    const version = createWorld().start({ args: ['--version'] });
    expect(await version.exited).toBe(0);
    expect(version.stdout.text()).toBe('Kubernetes v0.6.0\n');
  });
});

describe('the election', () => {
  it('lets one of two work; the other takes over when the lease has run out', async () => {
    const world = createWorld();
    const first = world.start();
    await world.clock.advance(1000);
    const second = world.start({ env: { ...ENV, HOSTNAME: 'ccm-2' } });
    await world.clock.advance(20_000);
    expect(second.stderr.text()).not.toContain('Started');
    first.signal('SIGTERM');
    expect(await first.exited).toBe(0);
    await world.clock.advance(12_000);
    expect(second.stderr.text()).not.toContain('Started');
    await world.clock.advance(8000);
    expect(second.stderr.text()).toContain('Started "cloud-node-controller"');
    second.signal('SIGTERM');
    await second.exited;
  });

  it('a lost lease ends the program', async () => {
    const world = createWorld();
    const program = world.start();
    await world.clock.advance(0);
    world.tenant.reachable = false;
    await world.clock.advance(14_000);
    expect(await program.exited).toBe(1);
    const lines = program.stderr.lines();
    expect(lines).toContain('E controllermanager.go:265] "leaderelection lost"');
    expect(lines).toContain('E leaderelection.go:484] Failed to update lock: the API server is off');
    expect(world.clock.pending).toBe(0);
  });

  it('tells why it cannot have the lease', async () => {
    const world = createWorld();
    world.tenant.intercept = ({ resource }) => {
      if (resource.plural === 'leases') throw forbidden(resource, 'cloud-controller-manager', 'not you');
    };
    const program = world.start();
    await world.clock.advance(0);
    expect(program.stderr.lines()).toContain(
      'E leaderelection.go:448] error retrieving resource lock kube-system/cloud-controller-manager: leases.coordination.k8s.io "cloud-controller-manager" is forbidden: not you',
    );
    program.signal('SIGTERM');
    expect(await program.exited).toBe(0);
  });

  it('can be switched off', async () => {
    const world = createWorld();
    const program = world.start({ args: [...ARGS, '--leader-elect=false'] });
    await world.clock.advance(0);
    expect(program.stderr.text()).toContain('Started "cloud-node-controller"');
    expect((await world.tenant.client().list(leases)).items).toEqual([]);
    program.signal('SIGTERM');
    expect(await program.exited).toBe(0);
    expect(world.clock.pending).toBe(0);
  });

  it('begins in the moment the API server answers', async () => {
    const world = createWorld();
    world.tenant.reachable = false;
    const program = world.start();
    await world.clock.advance(300);
    world.tenant.reachable = true;
    await world.clock.advance(350);
    expect(program.stderr.text()).toContain('Started "cloud-node-controller"');
    program.signal('SIGTERM');
    await program.exited;
  });

  it('without it, an API server that stays away ends the program after ten seconds', async () => {
    const world = createWorld();
    world.tenant.reachable = false;
    const program = world.start({ args: [...ARGS, '--leader-elect=false'] });
    await world.clock.advance(30_000);
    expect(await program.exited).toBe(255);
    expect(program.stderr.text()).toMatch(
      /F.* error building controller context: failed to wait for apiserver being healthy: timed out waiting for the condition: failed to get apiserver \/healthz status: the API server is off\n$/,
    );
  });
});

describe('the health port', () => {
  it('answers probes, and HTTP', async () => {
    const world = createWorld();
    const program = world.start();
    await world.clock.advance(0);
    expect(await program.probe('/healthz')).toEqual({ status: 200, body: 'ok' });
    expect(await program.probe('/healthz?verbose')).toEqual({
      status: 200,
      body: '[+]ping ok\n[+]leaderElection ok\n[+]cloud-node-controller ok\nhealthz check passed\n',
    });
    expect((await program.probe('/nonsense'))?.status).toBe(404);
    const socket = await program.network.connect('10.244.0.5', 10_258);
    const body = await new Promise<string>((resolve, reject) => {
      const request = httpGet({ path: '/metrics', createConnection: () => socket }, (response) => {
        let text = '';
        response.on('data', (chunk: Buffer) => (text += chunk.toString()));
        response.on('end', () => resolve(text));
      });
      request.on('error', reject);
    });
    expect(body).toContain('leader_election_master_status{name="cloud-controller-manager"} 1');
    program.signal('SIGTERM');
    await program.exited;
    await expect(program.network.connect('10.244.0.5', 10_258)).rejects.toMatchObject({
      code: 'ECONNREFUSED',
    });
  });

  it('that is taken ends the program', async () => {
    const program = createWorld().start({ takenPort: 10_258 });
    expect(await program.exited).toBe(1);
    expect(program.stderr.text()).toMatch(
      /^failed to create listener: failed to listen on 0\.0\.0\.0:10258: listen tcp 0\.0\.0\.0:10258: bind: address already in use\n/,
    );
  });

  it('that is 0 is not served', async () => {
    const world = createWorld();
    const program = world.start({ args: [...ARGS, '--secure-port=0'], takenPort: 10_258 });
    await world.clock.advance(0);
    expect(program.stderr.text()).not.toContain('Serving');
    program.signal('SIGTERM');
    expect(await program.exited).toBe(0);
  });
});
