// namespace: empties namespaces that are being deleted, then lets them go.
// Deletes everything in them by discovery (custom resources included), pods first, tells in conditions what remains and
// why, and takes the finalizer `kubernetes` away once nothing does.
// Promises: a namespace goes only when a list of every kind came back empty; goes on where it was after any crash.
// Leaves out: nothing.
// Models kubernetes/pkg/controller/namespace and its deletion package.
export { createNamespaceController } from './namespace-controller.ts';
