export * from './kind.ts'; export * from './kubelet-api.ts';
