import { describe, expect, it } from 'vitest';
import { parseDuration, parseFlags } from './flag-set.ts';
import { FLAGS } from './flags.ts';
import { isControllerEnabled, optionsFrom, validationError } from './options.ts';

const parse = (...argv: string[]) => optionsFrom(parseFlags(FLAGS, argv));

describe('the command line', () => {
  it('has upstream’s defaults', () => {
    expect(parse()).toEqual({
      cloudProvider: '',
      cloudConfig: '',
      kubeconfig: '',
      master: '',
      controllers: ['*'],
      clusterName: 'kubernetes',
      clusterCIDR: '',
      configureCloudRoutes: true,
      allowUntaggedCloud: false,
      nodeMonitorPeriod: 5000,
      nodeStatusUpdateFrequency: 300_000,
      routeReconciliationPeriod: 10_000,
      controllerStartInterval: 0,
      concurrentNodeSyncs: 1,
      concurrentNodeStatusUpdates: 1,
      concurrentServiceSyncs: 1,
      securePort: 10_258,
      verbosity: 0,
      leaderElection: {
        leaderElect: true,
        leaseDuration: 15_000,
        renewDeadline: 10_000,
        retryPeriod: 2000,
        resourceLock: 'leases',
        resourceName: 'cloud-controller-manager',
        resourceNamespace: 'kube-system',
      },
    });
  });

  it.each<[string[], object]>([
    [
      ['--cloud-provider=kubevirt', '--cloud-config', '/etc/cloud/cloud-config'],
      { cloudProvider: 'kubevirt', cloudConfig: '/etc/cloud/cloud-config' },
    ],
    [['--cloud_provider=x'], { cloudProvider: 'x' }],
    [['--cluster-name=a', '--cluster-name=b'], { clusterName: 'b' }],
    [['--controllers=a,-b', '--controllers', 'c'], { controllers: ['a', '-b', 'c'] }],
    [
      ['--allow-untagged-cloud', '--configure-cloud-routes=false'],
      { allowUntaggedCloud: true, configureCloudRoutes: false },
    ],
    [['-v=2'], { verbosity: 2 }],
    [['-v', '3'], { verbosity: 3 }],
    [['--v=4'], { verbosity: 4 }],
    [['--concurrent-node-syncs=4'], { concurrentNodeSyncs: 4, concurrentNodeStatusUpdates: 4 }],
    [['--concurrent-node-syncs=4', '--concurrent-node-status-updates=2'], { concurrentNodeStatusUpdates: 2 }],
    [['--node-status-update-frequency=1m30s'], { nodeStatusUpdateFrequency: 90_000 }],
  ])('%j', (argv, expected) => {
    expect(parse(...argv)).toMatchObject(expected);
  });

  it.each<[string[], string]>([
    [['--nonsense'], 'unknown flag: --nonsense'],
    [['--nonsense=1'], 'unknown flag: --nonsense'],
    [['-x'], "unknown shorthand flag: 'x' in -x"],
    [['--cloud-config'], 'flag needs an argument: --cloud-config'],
    [['-v'], "flag needs an argument: 'v' in -v"],
    [['--=x'], 'bad flag syntax: --=x'],
    [
      ['--leader-elect=maybe'],
      'invalid argument "maybe" for "--leader-elect" flag: strconv.ParseBool: parsing "maybe": invalid syntax',
    ],
    [
      ['--secure-port=x'],
      'invalid argument "x" for "--secure-port" flag: strconv.ParseInt: parsing "x": invalid syntax',
    ],
    [['--v=x'], 'invalid argument "x" for "-v, --v" flag: strconv.ParseInt: parsing "x": invalid syntax'],
    [
      ['--node-monitor-period=5'],
      'invalid argument "5" for "--node-monitor-period" flag: time: missing unit in duration "5"',
    ],
    [
      ['--node-monitor-period=5x'],
      'invalid argument "5x" for "--node-monitor-period" flag: time: unknown unit "x" in duration "5x"',
    ],
    [
      ['--node-monitor-period=soon'],
      'invalid argument "soon" for "--node-monitor-period" flag: time: invalid duration "soon"',
    ],
  ])('%j is refused', (argv, message) => {
    expect(() => parse(...argv)).toThrow(message);
  });

  it('keeps what is no flag, and everything behind --', () => {
    expect(parseFlags(FLAGS, ['a', '--v=1', 'b', '--', '--c']).positional).toEqual(['a', 'b', '--c']);
  });

  it('warns of deprecated flags', () => {
    expect(parseFlags(FLAGS, ['--node-sync-period=1s']).warnings).toEqual([
      'Flag --node-sync-period has been deprecated, This flag is currently no-op and will be deleted.',
    ]);
  });

  it.each<[string, number | undefined]>([
    ['0', 0],
    ['1.5h', 5_400_000],
    ['-2s', -2000],
    ['100us', 0.1],
    ['1h2m3s4ms', 3_723_004],
    ['', undefined],
    ['s', undefined],
    ['1s x', undefined],
  ])('the duration %j is %j ms', (text, expected) => {
    expect(parseDuration(text)).toBe(expected);
  });
});

const KNOWN = ['cloud-node-controller', 'node-route-controller'];

describe('validation', () => {
  it.each<[string[], string | undefined]>([
    [['--cloud-provider=kubevirt'], undefined],
    [[], '--cloud-provider cannot be empty'],
    [['--cloud-provider=k', '--controllers=-route'], '"route" is not in the list of known controllers'],
    [['--cloud-provider=k', '--controllers=*,cloud-node-controller,-node-route-controller'], undefined],
    [['--cloud-provider=k', '--leader-elect-resource-lock=endpoints'], 'resourceLock value must be "leases"'],
    [['--cloud-provider=k', '--leader-elect-resource-lock=endpoints', '--leader-elect=false'], undefined],
    [
      ['--cloud-provider=k', '--secure-port=70000'],
      '--secure-port 70000 must be between 0 and 65535, inclusive. 0 for turning off secure port',
    ],
    [
      ['--controllers=a,a,b'],
      '["a" is not in the list of known controllers, "b" is not in the list of known controllers, --cloud-provider cannot be empty]',
    ],
  ])('of %j', (argv, expected) => {
    expect(validationError(parse(...argv), KNOWN)).toBe(expected);
  });

  it.each<[string[], boolean]>([
    [['*'], true],
    [['*', '-a'], false],
    [['-a', 'a'], false],
    [['a', '-a'], true],
    [['b'], false],
    [['-b'], false],
  ])('--controllers=%j enables a: %s', (controllers, expected) => {
    expect(isControllerEnabled('a', controllers)).toBe(expected);
  });
});
