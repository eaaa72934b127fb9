// garbage-collector: what was made for an owner goes with it.
// Follows every deletable kind (found by discovery, again whenever CustomResourceDefinitions change) and keeps a graph by
// uid of owners and dependents only. Background: dependents whose owners are all absent, verified live, are deleted.
// Foreground: the owner waits for dependents that block it. Orphan: dependents are freed first.
// Promises: nothing is deleted on the word of a cache; a restart loses nothing, for all state is in the API.
// Leaves out: metrics. A namespaced owner exists in its dependent's namespace or not at all, as upstream.
// Models kubernetes/pkg/controller/garbagecollector.
export { createGarbageCollector } from './garbage-collector.ts';
