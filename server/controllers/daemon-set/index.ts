// daemon-set: one pod of a DaemonSet on every node that is meant and bears it.
// Nodes by the template's selector, affinity and tolerations (with those every daemon gets); pods pinned to their node by
// affinity; ControllerRevisions for `kubectl rollout`; RollingUpdate with maxUnavailable or maxSurge, OnDelete; failed
// pods replaced with back-off; counters in the status.
// Promises: never creates twice however late its cache is; writes a status only when it differs.
// Leaves out: nothing of apps/v1.
// Models kubernetes/pkg/controller/daemon.
export { createDaemonSetController } from './daemon-set-controller.ts';
