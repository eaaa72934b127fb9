import { describe, expect, it } from 'vitest';
import { type KubevirtCloudConfig, parseCloudConfig } from './cloud-config.ts';

const defaults: KubevirtCloudConfig = {
  kubeconfig: '',
  namespace: '',
  infraLabels: {},
  loadBalancer: {
    enabled: true,
    creationPollInterval: 5,
    creationPollTimeout: 300,
    selectorless: false,
    enableEPSController: false,
  },
  instancesV2: { enabled: true, zoneAndRegionEnabled: true },
};

describe('the cloud-config of KubeVirt', () => {
  it.each<{ row: string; text: string; expected: Partial<KubevirtCloudConfig> }>([
    { row: 'nothing', text: '', expected: {} },
    { row: 'an empty document', text: '---\n# nothing\n', expected: {} },
    {
      row: 'unknown keys are passed over',
      text: 'colour: green\nnamespace: a\n',
      expected: { namespace: 'a' },
    },
    { row: 'text may look like a number', text: 'namespace: 007\n', expected: { namespace: '007' } },
    { row: 'null leaves the default', text: 'namespace:\ninstancesV2:\n', expected: {} },
    {
      row: 'the last of equal keys counts',
      text: 'namespace: a\nnamespace: b\n',
      expected: { namespace: 'b' },
    },
    {
      row: 'booleans of YAML 1.1',
      text: 'instancesV2: {enabled: yes, zoneAndRegionEnabled: off}\n',
      expected: { instancesV2: { enabled: true, zoneAndRegionEnabled: false } },
    },
    { row: 'labels', text: 'infraLabels: {a: b, c: 1}\n', expected: { infraLabels: { a: 'b', c: '1' } } },
    {
      row: 'intervals that are not positive are the defaults',
      text: 'loadBalancer: {creationPollInterval: 0, creationPollTimeout: -3, selectorless: true}\n',
      expected: { loadBalancer: { ...defaults.loadBalancer, selectorless: true } },
    },
    {
      row: 'intervals',
      text: 'loadBalancer: {enabled: false, creationPollInterval: 2, creationPollTimeout: 60}\n',
      expected: {
        loadBalancer: {
          ...defaults.loadBalancer,
          enabled: false,
          creationPollInterval: 2,
          creationPollTimeout: 60,
        },
      },
    },
  ])('$row', ({ text, expected }) => {
    expect(parseCloudConfig(text)).toEqual({ ...defaults, ...expected });
  });

  it.each([
    [
      'just text',
      'yaml: unmarshal errors:\n  line 1: cannot unmarshal !!str `just text` into provider.CloudConfig',
    ],
    [
      'loadBalancer:\n  enabled: perhaps\n',
      'yaml: unmarshal errors:\n  line 2: cannot unmarshal !!str `perhaps` into bool',
    ],
    [
      'namespace: [a]\ninstancesV2: 1\n',
      'yaml: unmarshal errors:\n  line 1: cannot unmarshal !!seq into string\n  line 2: cannot unmarshal !!int `1` into provider.InstancesV2Config',
    ],
  ])('refuses %j', (text, message) => {
    expect(() => parseCloudConfig(text)).toThrow(message);
  });

  it.each(['a: b: c\n', '"open', '['.repeat(20_000)])('refuses what is no YAML: %.8j', (text) => {
    expect(() => parseCloudConfig(text)).toThrow(/^yaml: /);
  });
});
