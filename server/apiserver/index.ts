// apiserver: request in, object / `Status` / watch stream out. One server per cluster, over its store.
// The same chain serves HTTPS (`handle`, `upgrade`) and callers in this process (`backend`): authentication, impersonation,
// authorization, admission, the strategies of the kinds, and the registry over the store. Objects are kept as the JSON
// bytes that readers get; in-process readers share deep-frozen objects.
// Promises: an acknowledged write is as durable as its store; watches see every change once, in order, or are told why
// not; every refusal is a Status in upstream's words; nothing a client sends ends the process.
// Leaves out: aggregation, webhooks, SPDY, the proxy subresources, protobuf answers.
// Models k8s.io/apiserver, kubernetes/pkg/controlplane and kubernetes/pkg/registry.

export type { AuditRecord } from './audit.ts';
export type { Credentials } from './authn/authenticator.ts';
export type { HttpContext } from './http-context.ts';
export type {
  ExitStatus,
  KubeletApi,
  KubeletDirectory,
  LogOptions,
  PodRef,
  StreamIo,
} from './kubelet-api.ts';
export { type ApiServer, type ApiServerOptions, createApiServer } from './server.ts';
