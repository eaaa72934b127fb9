// client/testing: an API server small enough for unit tests.
// `createFakeBackend()` keeps objects of any kind in memory with resourceVersions, watches, patches, finalizers and
// Kubernetes' own refusals; it knows no validation, defaults, authorization or managedFields. Tests that need those use
// the real API server. Models k8s.io/client-go/testing (ObjectTracker, reactors).
export { createFakeBackend, type FakeBackend, type FakeBackendOptions } from './fake-backend.ts';
