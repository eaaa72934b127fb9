import type { Container, Pod, ServiceAccount, Volume, VolumeMount } from '#server/kube';
import { as } from '../kind.ts';
import type { AdmissionAttributes } from './chain.ts';
import { concerns, refuse } from './refusal.ts';

const RESOURCE = { group: '', plural: 'serviceaccounts' };
const MIRROR = 'kubernetes.io/config.mirror';
const MOUNT_PATH = '/var/run/secrets/kubernetes.io/serviceaccount';
const VOLUME_PREFIX = 'kube-api-access-';

/** An hour and seven seconds: kubelets know tokens nobody asked for by it. */
const TOKEN_SECONDS = 3607;

function isNewPod(attributes: AdmissionAttributes): boolean {
  return attributes.operation === 'CREATE' && !!attributes.object && concerns(attributes, 'pods');
}

function isMirror(pod: Pod): boolean {
  return pod.metadata.annotations?.[MIRROR] !== undefined;
}

function accountOf(attributes: AdmissionAttributes, pod: Pod): ServiceAccount {
  const namespace = attributes.namespace ?? '';
  const name = pod.spec.serviceAccountName ?? '';
  const found = attributes.server.read(RESOURCE, namespace, name);
  if (!found) {
    throw refuse(
      attributes,
      `error looking up service account ${namespace}/${name}: serviceaccount "${name}" not found`,
    );
  }
  return as<ServiceAccount>(found);
}

/** The token, the cluster's certificate authority and the namespace, as files. */
function accessVolume(name: string): Volume {
  return {
    name,
    projected: {
      defaultMode: 0o644,
      sources: [
        { serviceAccountToken: { expirationSeconds: TOKEN_SECONDS, path: 'token' } },
        { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
        {
          downwardAPI: {
            items: [{ path: 'namespace', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.namespace' } }],
          },
        },
      ],
    },
  };
}

function mountToken(attributes: AdmissionAttributes, pod: Pod): void {
  const { spec } = pod;
  const existing = spec.volumes?.find((volume) => volume.name.startsWith(VOLUME_PREFIX));
  const name = existing?.name ?? `${VOLUME_PREFIX}${attributes.server.suffix(5)}`;
  let needed = false;
  const mountIn = (container: Container): void => {
    if (container.volumeMounts?.some((mount) => mount.mountPath === MOUNT_PATH)) return;
    const mount: VolumeMount = { name, readOnly: true, mountPath: MOUNT_PATH };
    container.volumeMounts = [...(container.volumeMounts ?? []), mount];
    needed = true;
  };
  for (const container of spec.initContainers ?? []) mountIn(container);
  for (const container of spec.containers ?? []) mountIn(container);
  if (needed && !existing) spec.volumes = [...(spec.volumes ?? []), accessVolume(name)];
}

/**
 * Every pod runs as a service account of its namespace, which must exist; its token is mounted unless pod or account
 * opts out. Mirror pods are left alone. Models kubernetes/plugin/pkg/admission/serviceaccount.
 */
export function admitServiceAccount(attributes: AdmissionAttributes): void {
  if (!isNewPod(attributes) || !attributes.object) return;
  const pod = as<Pod>(attributes.object);
  if (isMirror(pod)) return;
  const name = pod.spec.serviceAccountName || 'default';
  pod.spec.serviceAccountName = name;
  pod.spec.serviceAccount = name;
  const account = accountOf(attributes, pod);
  if (pod.spec.automountServiceAccountToken ?? account.automountServiceAccountToken ?? true)
    mountToken(attributes, pod);
  if (!pod.spec.imagePullSecrets?.length && account.imagePullSecrets?.length) {
    pod.spec.imagePullSecrets = structuredClone(account.imagePullSecrets);
  }
}

/** Mirror pods belong to a machine, not to an account. */
export function validateServiceAccount(attributes: AdmissionAttributes): void {
  if (!isNewPod(attributes) || !attributes.object) return;
  const pod = as<Pod>(attributes.object);
  if (!isMirror(pod)) {
    accountOf(attributes, pod);
    return;
  }
  if (pod.spec.serviceAccountName)
    throw refuse(attributes, 'a mirror pod may not reference service accounts');
  for (const volume of pod.spec.volumes ?? []) {
    if (volume.secret) throw refuse(attributes, 'a mirror pod may not reference secrets');
    if (volume.projected?.sources?.some((source) => source.serviceAccountToken)) {
      throw refuse(attributes, 'a mirror pod may not use ServiceAccountToken volume projections');
    }
  }
}
