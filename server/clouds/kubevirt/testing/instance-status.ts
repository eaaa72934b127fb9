import type { ApiBackend } from '#server/client';
import type { UnstructuredObject } from '#server/kube';

/**
 * A fake API server that knows that VirtualMachineInstances have no status subresource: one update writes all of it.
 */
export function withoutInstanceStatus(fake: ApiBackend): ApiBackend {
  return {
    raw: (user, path) => fake.raw(user, path),
    watch: (request, onEvent, onEnd) => fake.watch(request, onEvent, onEnd),
    async request(request) {
      if (request.resource.plural !== 'virtualmachineinstances' || request.verb !== 'update')
        return fake.request(request);
      const stored = await fake.request({ ...request, subresource: 'status' });
      const body = request.body as UnstructuredObject;
      return fake.request({
        ...request,
        body: { ...body, metadata: { ...body.metadata, resourceVersion: stored.metadata.resourceVersion } },
      });
    },
  };
}
