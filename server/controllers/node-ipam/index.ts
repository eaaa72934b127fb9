// node-ipam: every node gets its share of the cluster's pod addresses (spec.podCIDR, spec.podCIDRs).
// Promises: two nodes never share a range, restarts included; a node keeps its range; a freed one is used again.
// Leaves out: dual stack, allocation by a cloud.
// Models kubernetes/pkg/controller/nodeipam/ipam (range_allocator.go, cidrset).
export { createNodeIpamController } from './node-ipam-controller.ts';
