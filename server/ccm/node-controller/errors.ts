/** Why a Node could not be initialised; it is tried again. */
export class NodeSyncError extends Error {
  override readonly name = 'NodeSyncError';
}
