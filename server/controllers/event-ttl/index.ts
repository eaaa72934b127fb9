// event-ttl: Events go an hour after they last happened (`--event-ttl=1h0m0s`).
// Upstream gives every Event a lease in etcd; this store has none, so a sweep does it.
// Promises: one timer, set for the moment the oldest Event is due (a minute apart at least, an hour at most), and no
// cache: Events are read when swept and forgotten.
// Leaves out: events.k8s.io by name: the API serves the same objects under both.
// Models the event strategy of kubernetes/pkg/registry/core/event.
export { createEventTtl } from './event-ttl.ts';
