// endpoints: the pods behind every Service, as one Endpoints object of the Service's name.
// Ready and not ready addresses apart, subsets merged as upstream packs them, labelled as managed by this controller; at
// most 1000 addresses. Deletes the object with its Service, leftovers of a former run included.
// Promises: writes only when something differs.
// Leaves out: nothing; EndpointSlices are another controller's.
// Models kubernetes/pkg/controller/endpoint.
export { createEndpointsController } from './endpoints-controller.ts';
