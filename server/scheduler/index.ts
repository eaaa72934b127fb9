// scheduler: binds pods to nodes, and says why it cannot.
// One pod at a time: filter the nodes (unschedulable, taints, node affinity and selector, host ports, resources, pod
// (anti-)affinity, topology spread), score what is left, bind through pods/binding. A pod that fits nowhere gets the
// PodScheduled condition and a FailedScheduling event, and is tried again when something changes that could help.
// Left out: preemption (its verdict is worded as upstream words it when there is nobody to evict), volumes, dynamic
// resources, several profiles. Models kubernetes/pkg/scheduler of v1.36 with its default plugins.
export { createScheduler, type Scheduler } from './scheduler.ts';
