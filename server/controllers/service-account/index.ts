// service-account: every namespace that is not being deleted has the ServiceAccount `default`.
// Promises: comes back when deleted; one read from the cache and no write when it is there.
// Leaves out: token Secrets (tokens are requested from the API server).
// Models kubernetes/pkg/controller/serviceaccount/serviceaccounts_controller.go.
export { createServiceAccountController } from './service-account-controller.ts';
