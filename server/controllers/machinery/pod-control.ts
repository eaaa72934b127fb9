import { errorMessage } from '#server/base';
import type { Client, Draft, EventRecorder } from '#server/client';
import {
  controllerReference,
  isNotFound,
  type KubeObject,
  type Pod,
  type PodTemplateSpec,
  pods,
  StatusError,
} from '#server/kube';

/** Makes and deletes the pods of an owner, and tells of it in events about the owner. */
export interface PodControl {
  /** Creates a pod from the owner's template. Rejects when refused, after an event FailedCreate. */
  create(owner: KubeObject, template: PodTemplateSpec): Promise<void>;
  /** Deletes the pod. Rejects when refused (event FailedDelete) and with 404 when there is none. */
  delete(owner: KubeObject, pod: Pod): Promise<void>;
}

/** The pod that `owner` makes of a template: named `<owner>-<random>`, in the owner's namespace, controlled by it. */
export function podFromTemplate(owner: KubeObject, template: PodTemplateSpec): Draft<Pod> {
  const { labels, annotations, finalizers } = template.metadata ?? {};
  return {
    metadata: {
      generateName: `${owner.metadata.name}-`,
      ...(owner.metadata.namespace ? { namespace: owner.metadata.namespace } : {}),
      ...(labels ? { labels } : {}),
      ...(annotations ? { annotations } : {}),
      ...(finalizers ? { finalizers } : {}),
      ownerReferences: [controllerReference(owner)],
    },
    spec: template.spec ?? { containers: [] },
  };
}

/** The refusal of a create in a namespace that is being deleted. */
export function isNamespaceTerminating(error: unknown): boolean {
  return (
    error instanceof StatusError &&
    (error.status.details?.causes?.some((cause) => cause.reason === 'NamespaceTerminating') ?? false)
  );
}

/** Models RealPodControl of kubernetes/pkg/controller/controller_utils.go. */
export function createPodControl(client: Client, recorder: EventRecorder): PodControl {
  return {
    async create(owner, template) {
      try {
        const pod = await client.create(pods, podFromTemplate(owner, template));
        recorder.event(owner, 'Normal', 'SuccessfulCreate', `Created pod: ${pod.metadata.name}`);
      } catch (error) {
        if (!isNamespaceTerminating(error))
          recorder.event(owner, 'Warning', 'FailedCreate', `Error creating: ${errorMessage(error)}`);
        throw error;
      }
    },
    async delete(owner, pod) {
      const { namespace, name } = pod.metadata;
      try {
        await client.delete(pods, { namespace, name });
        recorder.event(owner, 'Normal', 'SuccessfulDelete', `Deleted pod: ${name}`);
      } catch (error) {
        if (!isNotFound(error))
          recorder.event(owner, 'Warning', 'FailedDelete', `Error deleting: ${errorMessage(error)}`);
        throw error;
      }
    },
  };
}
