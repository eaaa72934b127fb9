import type { Draft } from '#server/client';
import type { Deployment, Node, PodTemplateSpec } from '#server/kube';

export function podTemplate(options: { app?: string; image?: string } = {}): PodTemplateSpec {
  const { app = 'web', image = 'nginx:1' } = options;
  return {
    metadata: { labels: { app } } as unknown as NonNullable<PodTemplateSpec['metadata']>,
    spec: { containers: [{ name: 'main', image }] },
  };
}

export function deployment(spec: Partial<Deployment['spec']> = {}, name = 'web'): Draft<Deployment> {
  return {
    metadata: { name, namespace: 'default' },
    spec: {
      replicas: 1,
      selector: { matchLabels: { app: name } },
      template: podTemplate({ app: name }),
      ...spec,
    },
  };
}

export function node(
  name: string,
  rest: { labels?: Record<string, string>; spec?: Node['spec']; status?: Node['status'] } = {},
): Draft<Node> {
  return {
    metadata: { name, ...(rest.labels ? { labels: rest.labels } : {}) },
    spec: rest.spec ?? {},
    ...(rest.status ? { status: rest.status } : {}),
  };
}
