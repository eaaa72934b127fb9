import type { UserInfo } from '#server/kube';
import type { ApiBackend, Client } from './contract.ts';
import { createClient, defaultFieldManager, type Transport } from './requests.ts';

export interface InProcessClientOptions {
  backend: ApiBackend;
  /** As whom every request is authorized. */
  user: UserInfo;
  /** `component/version`, as in the User-Agent header. */
  userAgent: string;
  /** Default: the part of `userAgent` before the slash. */
  fieldManager?: string;
}

/**
 * A Client whose requests go straight to an API server of this process: no socket, no copy, no JSON. Answers and watch
 * events are the server's own frozen objects; watch events are delivered synchronously, in order.
 */
export function createInProcessClient(options: InProcessClientOptions): Client {
  const { backend, user, userAgent } = options;
  const transport: Transport = {
    request: (request) => backend.request({ ...request, user, userAgent }),
    watch(request, onEvent, onEnd) {
      let stopped = false;
      const end = (error?: unknown): void => {
        if (stopped) return;
        stopped = true;
        onEnd(error);
      };
      let started = false;
      let inner: { stop(): void } | undefined;
      try {
        inner = backend.watch(
          { ...request, user, userAgent },
          (event) => {
            if (!stopped) onEvent(event);
          },
          (error) => {
            if (started) end(error);
            else queueMicrotask(() => end(error));
          },
        );
      } catch (error) {
        queueMicrotask(() => end(error));
      }
      started = true;
      return {
        stop() {
          if (stopped) return;
          stopped = true;
          inner?.stop();
        },
      };
    },
    raw: (path) => backend.raw(user, path),
  };
  return createClient(transport, options.fieldManager ?? defaultFieldManager(userAgent));
}
