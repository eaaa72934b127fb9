/** Something that was started and can be stopped. `dispose` may be called once. */
export interface Disposable {
  dispose(): void | Promise<void>;
}

/** Collects what was started, in order; stops it in reverse order. */
export interface DisposableStore {
  /** Registers on the line that creates; returns its argument. After `dispose` it is disposed at once. */
  add<T extends Disposable>(item: T): T;
  defer(callback: () => void | Promise<void>): void;
  readonly disposed: boolean;
  /** Disposes everything once, last first. All are tried; the first error is thrown at the end. */
  dispose(): Promise<void>;
}

export function createDisposables(): DisposableStore {
  const items: Disposable[] = [];
  let disposed = false;
  return {
    add(item) {
      if (disposed) void item.dispose();
      else items.push(item);
      return item;
    },
    defer(callback) {
      this.add({ dispose: callback });
    },
    get disposed() {
      return disposed;
    },
    async dispose() {
      if (disposed) return;
      disposed = true;
      let failed: { error: unknown } | undefined;
      for (const item of items.reverse()) {
        try {
          await item.dispose();
        } catch (error) {
          failed ??= { error };
        }
      }
      items.length = 0;
      if (failed) throw failed.error;
    },
  };
}
