import type {
  Container,
  EphemeralContainer,
  Pod,
  PodSpec,
  PodTemplateSpec,
  Probe,
  Volume,
} from '#server/kube';

/** Octal 0644: the mode of files from Secrets, ConfigMaps and the downward API. */
const FILE_MODE = 0o644;

/** A token mounted by hand lives an hour. */
const TOKEN_SECONDS = 3600;

/**
 * `Always` for images without a tag or with `:latest`, else `IfNotPresent`. An image that cannot be parsed counts as
 * tagged. Models SetDefaults_Container with pkg/util/parsers.
 */
function pullPolicy(image: string | undefined): string {
  if (!image) return 'IfNotPresent';
  const at = image.indexOf('@');
  const named = at < 0 ? image : image.slice(0, at);
  const colon = named.lastIndexOf(':');
  const tag = colon > named.lastIndexOf('/') ? named.slice(colon + 1) : at < 0 ? 'latest' : '';
  return tag === 'latest' ? 'Always' : 'IfNotPresent';
}

function defaultProbe(probe: Probe | undefined): void {
  if (!probe) return;
  probe.timeoutSeconds ||= 1;
  probe.periodSeconds ||= 10;
  probe.successThreshold ||= 1;
  probe.failureThreshold ||= 3;
  defaultHttpGet(probe);
}

function defaultHttpGet(handler: Pick<Probe, 'httpGet'> | undefined): void {
  if (!handler?.httpGet) return;
  handler.httpGet.path ||= '/';
  handler.httpGet.scheme ||= 'HTTP';
}

function defaultContainer(container: Container | EphemeralContainer): void {
  container.imagePullPolicy ||= pullPolicy(container.image);
  container.terminationMessagePath ||= '/dev/termination-log';
  container.terminationMessagePolicy ||= 'File';
  for (const variable of container.env ?? []) {
    const reference = variable.valueFrom?.fieldRef;
    if (reference) reference.apiVersion ||= 'v1';
  }
  defaultProbe(container.livenessProbe);
  defaultProbe(container.readinessProbe);
  defaultProbe(container.startupProbe);
  defaultHttpGet(container.lifecycle?.postStart);
  defaultHttpGet(container.lifecycle?.preStop);
}

function hasSource(volume: Volume): boolean {
  return Object.keys(volume).some((key) => key !== 'name');
}

function defaultVolume(volume: Volume): void {
  if (!hasSource(volume)) volume.emptyDir = {};
  if (volume.secret) volume.secret.defaultMode ??= FILE_MODE;
  if (volume.configMap) volume.configMap.defaultMode ??= FILE_MODE;
  if (volume.hostPath) volume.hostPath.type ??= '';
  if (volume.image && !volume.image.pullPolicy) volume.image.pullPolicy = pullPolicy(volume.image.reference);
  if (volume.downwardAPI) {
    volume.downwardAPI.defaultMode ??= FILE_MODE;
    for (const item of volume.downwardAPI.items ?? []) if (item.fieldRef) item.fieldRef.apiVersion ||= 'v1';
  }
  const claim = volume.ephemeral?.volumeClaimTemplate?.spec;
  if (claim) claim.volumeMode ??= 'Filesystem';
  if (!volume.projected) return;
  volume.projected.defaultMode ??= FILE_MODE;
  for (const source of volume.projected.sources ?? []) {
    if (source.serviceAccountToken) source.serviceAccountToken.expirationSeconds ??= TOKEN_SECONDS;
    for (const item of source.downwardAPI?.items ?? []) if (item.fieldRef) item.fieldRef.apiVersion ||= 'v1';
  }
}

function defaultPodSpec(spec: PodSpec): void {
  spec.dnsPolicy ||= 'ClusterFirst';
  spec.restartPolicy ||= 'Always';
  spec.securityContext ??= {};
  spec.terminationGracePeriodSeconds ??= 30;
  spec.schedulerName ||= 'default-scheduler';
  // The older name of the field always mirrors the newer one.
  const account = spec.serviceAccountName || spec.serviceAccount;
  if (account) {
    spec.serviceAccountName = account;
    spec.serviceAccount = account;
  }
  for (const volume of spec.volumes ?? []) defaultVolume(volume);
  for (const container of [
    ...(spec.initContainers ?? []),
    ...(spec.containers ?? []),
    ...(spec.ephemeralContainers ?? []),
  ]) {
    defaultContainer(container);
  }
}

/** The template of a workload: everything but what only materializes in a Pod. */
export function defaultPodTemplate(template: PodTemplateSpec): void {
  if (template.spec) defaultPodSpec(template.spec);
}

function requestsFromLimits(container: Container): void {
  const limits = container.resources?.limits;
  if (!limits) return;
  container.resources ??= {};
  container.resources.requests = { ...limits, ...container.resources.requests };
}

function hostPortsFromPorts(container: Container): void {
  for (const port of container.ports ?? []) port.hostPort ||= port.containerPort;
}

/** Models SetDefaults_Pod and SetDefaults_PodSpec of kubernetes/pkg/apis/core/v1/defaults.go. */
export function defaultPod(pod: Pod): void {
  const { spec, status } = pod;
  const containers = [...(spec.containers ?? []), ...(spec.initContainers ?? [])];
  for (const container of containers) requestsFromLimits(container);
  if (spec.hostNetwork) for (const container of containers) hostPortsFromPorts(container);
  spec.enableServiceLinks ??= true;
  defaultPodSpec(spec);
  if (!status) return;
  if (status.podIP && !status.podIPs?.length) status.podIPs = [{ ip: status.podIP }];
  const first = status.podIPs?.[0]?.ip;
  if (first) status.podIP = first;
}
