import { isMap, isScalar, LineCounter, parseDocument, type YAMLMap, type Node as YamlNode } from 'yaml';
import { errorMessage } from '#server/base';
import { CloudProviderError } from '../../contract.ts';

/** The provider's configuration, what the file leaves out filled in. */
export interface KubevirtCloudConfig {
  /** Path of a kubeconfig of the infrastructure cluster; empty: the cluster this process runs in. */
  kubeconfig: string;
  /** Of the virtual machines and the load balancers' Services. */
  namespace: string;
  /** Further labels of these Services. */
  infraLabels: Record<string, string>;
  loadBalancer: {
    enabled: boolean;
    /** Seconds. */
    creationPollInterval: number;
    /** Seconds. */
    creationPollTimeout: number;
    selectorless: boolean;
    enableEPSController: boolean;
  };
  instancesV2: { enabled: boolean; zoneAndRegionEnabled: boolean };
}

const DEFAULTS: KubevirtCloudConfig = {
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

/** UTF-16 units the file may have. */
const MAX_SIZE = 64 * 1024;

/**
 * Reads the cloud-config file. Keys nobody knows are passed over; a value of the wrong type throws CloudProviderError, as
 * does text that is no YAML. Models kubevirt/cloud-provider-kubevirt pkg/provider/cloud.go (NewCloudConfigFromBytes).
 */
export function parseCloudConfig(text: string): KubevirtCloudConfig {
  const config = structuredClone(DEFAULTS);
  const root = parseYaml(text);
  if (!root) return config;
  const reader = createReader(root.lineOf);
  const top = reader.mapping(root.node, 'provider.CloudConfig');
  config.kubeconfig = reader.text(top, 'kubeconfig', config.kubeconfig);
  config.namespace = reader.text(top, 'namespace', config.namespace);
  config.infraLabels = reader.labels(top, 'infraLabels');
  const { loadBalancer, instancesV2 } = config;
  const balancer = reader.section(top, 'loadBalancer', 'provider.LoadBalancerConfig');
  loadBalancer.enabled = reader.bool(balancer, 'enabled', loadBalancer.enabled);
  loadBalancer.creationPollInterval = reader.positive(
    balancer,
    'creationPollInterval',
    loadBalancer.creationPollInterval,
  );
  loadBalancer.creationPollTimeout = reader.positive(
    balancer,
    'creationPollTimeout',
    loadBalancer.creationPollTimeout,
  );
  loadBalancer.selectorless = reader.bool(balancer, 'selectorless', false);
  loadBalancer.enableEPSController = reader.bool(balancer, 'enableEPSController', false);
  const instances = reader.section(top, 'instancesV2', 'provider.InstancesV2Config');
  instancesV2.enabled = reader.bool(instances, 'enabled', instancesV2.enabled);
  instancesV2.zoneAndRegionEnabled = reader.bool(
    instances,
    'zoneAndRegionEnabled',
    instancesV2.zoneAndRegionEnabled,
  );
  reader.check();
  return config;
}

interface Root {
  node: YamlNode;
  lineOf: (node: YamlNode) => number;
}

/** Undefined for an empty document. */
function parseYaml(text: string): Root | undefined {
  if (text.length > MAX_SIZE)
    throw new CloudProviderError(`yaml: document is longer than ${MAX_SIZE} characters`);
  const lines = new LineCounter();
  const lineAt = (offset: number): number => lines.linePos(offset).line;
  try {
    // YAML 1.1 and the last of equal keys, as the library upstream reads it with.
    const document = parseDocument(text, {
      version: '1.1',
      uniqueKeys: false,
      prettyErrors: false,
      logLevel: 'silent',
      lineCounter: lines,
    });
    const [problem] = document.errors;
    if (problem) throw new CloudProviderError(`yaml: line ${lineAt(problem.pos[0])}: ${problem.message}`);
    const node = document.contents;
    if (!node || (isScalar(node) && node.value === null)) return undefined;
    return { node, lineOf: (at) => lineAt(at.range?.[0] ?? 0) };
  } catch (error) {
    // A document nested too deeply exhausts the parser's stack.
    if (error instanceof CloudProviderError) throw error;
    throw new CloudProviderError(`yaml: ${errorMessage(error)}`);
  }
}

type Mapping = YAMLMap<unknown, unknown> | undefined;

/** Reads values by type, collecting what does not fit, as `cannot unmarshal` lines. */
function createReader(lineOf: (node: YamlNode) => number) {
  const problems: string[] = [];
  const misfit = (node: YamlNode, type: string): void => {
    problems.push(`  line ${lineOf(node)}: cannot unmarshal ${described(node)} into ${type}`);
  };
  const valueOf = (mapping: Mapping, key: string): YamlNode | undefined => {
    const pair = mapping?.items.findLast((item) => isScalar(item.key) && item.key.value === key);
    const node = pair?.value as YamlNode | null | undefined;
    return !node || (isScalar(node) && node.value === null) ? undefined : node;
  };
  const mapping = (node: YamlNode | undefined, type: string): Mapping => {
    if (node === undefined || isMap(node)) return node;
    misfit(node, type);
    return undefined;
  };
  /** A scalar as it was written: numbers and booleans are text too where text is asked for. */
  const textOf = (node: YamlNode, type: string): string | undefined => {
    if (isScalar(node)) return node.source ?? String(node.value);
    misfit(node, type);
    return undefined;
  };
  return {
    mapping,
    section: (from: Mapping, key: string, type: string): Mapping => mapping(valueOf(from, key), type),
    text(from: Mapping, key: string, fallback: string): string {
      const node = valueOf(from, key);
      return (node && textOf(node, 'string')) ?? fallback;
    },
    bool(from: Mapping, key: string, fallback: boolean): boolean {
      const node = valueOf(from, key);
      if (!node) return fallback;
      if (isScalar(node) && typeof node.value === 'boolean') return node.value;
      misfit(node, 'bool');
      return fallback;
    },
    positive(from: Mapping, key: string, fallback: number): number {
      const node = valueOf(from, key);
      if (!node) return fallback;
      if (isScalar(node) && Number.isInteger(node.value)) return Math.max(0, Number(node.value)) || fallback;
      misfit(node, 'int');
      return fallback;
    },
    labels(from: Mapping, key: string): Record<string, string> {
      const entries = mapping(valueOf(from, key), 'map[string]string')?.items ?? [];
      return Object.fromEntries(
        entries.map(({ key: name, value }) => {
          const node = value as YamlNode | null;
          return [isScalar(name) ? String(name.value) : '', (node && textOf(node, 'string')) ?? ''];
        }),
      );
    },
    check(): void {
      if (problems.length > 0)
        throw new CloudProviderError(`yaml: unmarshal errors:\n${problems.join('\n')}`);
    },
  };
}

/** ``!!str `text` ``, at most ten characters of it. */
function described(node: YamlNode): string {
  if (!isScalar(node)) return isMap(node) ? '!!map' : '!!seq';
  const source = node.source ?? String(node.value);
  const short = source.length > 10 ? `${source.slice(0, 7)}...` : source;
  return `${tagOf(node.value)} \`${short}\``;
}

function tagOf(value: unknown): string {
  if (typeof value === 'boolean') return '!!bool';
  if (typeof value === 'number') return Number.isInteger(value) ? '!!int' : '!!float';
  return '!!str';
}
