import { createHash, timingSafeEqual } from 'node:crypto';
import type { Registry } from 'prom-client';
import { failure, serviceUnavailable } from '#server/kube';
import type { Kubeconfigs, Tenant } from '#server/tenants';
import type { Route, RouteAnswer } from './http-server.ts';

export interface RoutesOptions {
  /** The solo user's tenant and who hands out its kubeconfigs; undefined until the tenant has been applied. */
  owned: () => { tenant: Tenant; kubeconfigs: Kubeconfigs } | undefined;
  /** `ok`, or what is being waited for. */
  readiness: () => { ready: boolean; waitingFor: string };
  metrics: Registry;
  metricsToken: string | undefined;
  /** Base URL for clients elsewhere; undefined: the Secret's own URL, good on this machine. */
  publicApiUrl: string | undefined;
}

/** The routes of the app. Each is one entry; `/api/openapi.json` is written from them. */
export function createRoutes(options: RoutesOptions): Route[] {
  const routes: Route[] = [
    {
      method: 'GET',
      path: '/healthz',
      open: true,
      summary: 'The process answers',
      handle: () => text('ok\n'),
    },
    {
      method: 'GET',
      path: '/readyz',
      open: true,
      summary: "The management cluster serves and the user's cluster is ready",
      handle: () => {
        const { ready, waitingFor } = options.readiness();
        return ready ? text('ok\n') : { ...text(`waiting for ${waitingFor}\n`), status: 503 };
      },
    },
    {
      method: 'GET',
      path: '/metrics',
      open: true,
      summary: 'Prometheus metrics, for this machine or with METRICS_TOKEN as Bearer token',
      handle: async ({ loopback, bearer }) => {
        if (!loopback && !sameToken(bearer, options.metricsToken))
          throw failure(401, 'Unauthorized', 'metrics need METRICS_TOKEN as Bearer token');
        return { contentType: options.metrics.contentType, body: await options.metrics.metrics() };
      },
    },
    ...kubeconfigRoutes(options),
  ];
  routes.push({
    method: 'GET',
    path: '/api/openapi.json',
    summary: 'This description',
    handle: () => json(describeRoutes(routes)),
  });
  return routes;
}

function kubeconfigRoutes({ owned, publicApiUrl }: RoutesOptions): Route[] {
  const current = (): { tenant: Tenant; kubeconfigs: Kubeconfigs } => {
    const found = owned();
    if (!found) throw serviceUnavailable('your cluster is still being made; ask again in a moment');
    return found;
  };
  return [
    {
      method: 'GET',
      path: '/api/kubeconfig',
      summary: "A kubeconfig for the user's own tools: a ServiceAccount token of its own, good for 12 hours",
      query: { cluster: '`tenant` (default) or `management`: your namespace of the management cluster' },
      handle: async ({ query }) => {
        const cluster = query.get('cluster') ?? 'tenant';
        if (cluster !== 'tenant' && cluster !== 'management') {
          throw failure(
            400,
            'BadRequest',
            `cluster=${JSON.stringify(cluster)} is neither "tenant" nor "management"`,
          );
        }
        const { tenant, kubeconfigs } = current();
        const path = cluster === 'management' ? 'management' : `${tenant.namespace}/${tenant.cluster}`;
        const server = publicApiUrl === undefined ? {} : { server: `${publicApiUrl}/clusters/${path}` };
        return {
          contentType: 'application/yaml',
          body: await kubeconfigs.issue(tenant, cluster, server),
          headers: { 'content-disposition': `attachment; filename="kubeconfig-${cluster}.yaml"` },
        };
      },
    },
    {
      method: 'GET',
      path: '/api/kubeconfigs',
      summary: 'The kubeconfigs that were handed out and are still good',
      handle: async () => {
        const { tenant, kubeconfigs } = current();
        return json({ items: await kubeconfigs.list(tenant) });
      },
    },
    {
      method: 'DELETE',
      path: '/api/kubeconfigs/:id',
      summary: 'Revokes one at once',
      handle: async ({ params }) => {
        const { tenant, kubeconfigs } = current();
        await kubeconfigs.revoke(tenant, params.id ?? '');
        return json({ revoked: params.id });
      },
    },
  ];
}

function text(body: string): RouteAnswer {
  return { contentType: 'text/plain; charset=utf-8', body };
}

function json(value: unknown): RouteAnswer {
  return { contentType: 'application/json', body: `${JSON.stringify(value)}\n` };
}

function sameToken(given: string | undefined, wanted: string | undefined): boolean {
  if (given === undefined || wanted === undefined) return false;
  const digest = (value: string): Buffer => createHash('sha256').update(value).digest();
  return timingSafeEqual(digest(given), digest(wanted));
}

/** OpenAPI 3.1 of the app's own routes. */
function describeRoutes(routes: readonly Route[]): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    const path = route.path.replace(/:(\w+)/g, '{$1}');
    const inPath = [...route.path.matchAll(/:(\w+)/g)].map((match) => ({
      name: match[1],
      in: 'path',
      required: true,
      schema: { type: 'string' },
    }));
    const inQuery = Object.entries(route.query ?? {}).map(([name, description]) => ({
      name,
      in: 'query',
      description,
      schema: { type: 'string' },
    }));
    paths[path] = {
      ...paths[path],
      [route.method.toLowerCase()]: {
        summary: route.summary,
        ...(inPath.length + inQuery.length > 0 ? { parameters: [...inPath, ...inQuery] } : {}),
        ...(route.open ? { security: [] } : {}),
        responses: {
          200: { description: 'OK' },
          default: { description: 'A Kubernetes Status that says what happened and what to do' },
        },
      },
    };
  }
  return {
    openapi: '3.1.0',
    info: { title: 'kube-classroom', version: '0.1.0' },
    components: {
      securitySchemes: {
        token: { type: 'http', scheme: 'bearer', description: 'The text of DATA_DIR/token' },
      },
    },
    security: [{ token: [] }],
    paths,
  };
}
