// token-cleaner: deletes bootstrap tokens (Secrets of kube-system) when they expire.
// Promises: a timer only per token that will expire.
// Leaves out: tokens that cannot be read; they are nobody's.
// Models kubernetes/pkg/controller/bootstrap/tokencleaner.go.
export { createTokenCleaner } from './token-cleaner.ts';
