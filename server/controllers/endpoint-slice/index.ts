// endpoint-slice: the pods behind every Service, in EndpointSlices of at most 100 endpoints.
// One family of slices per address type and set of resolved ports; an existing slice is changed before one is added, an
// endpoint stays where it is, and a Service without pods keeps one empty slice. Conditions ready, serving, terminating;
// zone from the node; hints for trafficDistribution.
// Promises: a slice is written only when it differs; a cache that lags behind its own writes is waited for.
// Leaves out: topology-aware hints by proportion (service.kubernetes.io/topology-mode), mirroring of Endpoints.
// Models k8s.io/endpointslice and kubernetes/pkg/controller/endpointslice.
export { createEndpointSliceController } from './endpoint-slice-controller.ts';
