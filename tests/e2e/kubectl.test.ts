import { rmSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CommandResult, type Kubectl, type Product, startProduct } from '../support/product.ts';

/**
 * What may differ from run to run, by the mark that stands for it. All else of an answer is compared, but for the width
 * of columns.
 */
const MARKS: Readonly<Record<string, string>> = {
  '<age>': '(?:\\d+[smh])+',
  '<time>': '\\S.*\\S',
  '<ip>': '10\\.\\d+\\.\\d+\\.\\d+',
  '<port>': '3\\d{4}',
  '<hash>': '[a-z0-9]{8,10}',
  '<id>': '[a-z0-9]{5}',
  '<uid>': '[0-9a-f-]{36}',
  '<hex>': '[0-9a-f]{64}',
  '<node>': 'tenant-[a-z0-9]{5}-control-plane-[a-z0-9]{5}',
  '<token>': '[\\w-]+\\.[\\w-]+\\.[\\w-]+',
};

/** A row of the table: a command line, its whole output (both streams, standard error last) and its exit code. */
type Row = readonly [command: string, output: string, code?: number];

function pattern(output: string): RegExp {
  const literal = squeeze(output).replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  return new RegExp(`^${literal.replace(/<[a-z]+>/g, (mark) => MARKS[mark] ?? mark)}$`);
}

function squeeze(text: string): string {
  return text.replace(/ +$/gm, '').replace(/ {2,}/g, '  ').trimEnd();
}

function expectRow({ code, stdout, stderr }: CommandResult, [command, output, wanted = 0]: Row): void {
  expect(squeeze(stdout + stderr), command).toMatch(pattern(output));
  expect(code, command).toBe(wanted);
}

const INVALID_NAME = `metadata.name: Invalid value: "Bad_Name": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`;

const TABLES: Readonly<Record<string, readonly Row[]>> = {
  'create and get': [
    ['kubectl create deployment web --image=nginx:1.29 --port=80', 'deployment.apps/web created'],
    [
      'kubectl create deployment web --image=nginx:1.29',
      'error: failed to create deployment: deployments.apps "web" already exists',
      1,
    ],
    ['kubectl rollout status deployment/web | tail -1', 'deployment "web" successfully rolled out'],
    ['kubectl get deployment web', 'NAME  READY  UP-TO-DATE  AVAILABLE  AGE\nweb  1/1  1  1  <age>'],
    [
      'kubectl get deployment,replicaset web -o wide --ignore-not-found',
      'NAME  READY  UP-TO-DATE  AVAILABLE  AGE  CONTAINERS  IMAGES  SELECTOR\nweb  1/1  1  1  <age>  nginx  nginx:1.29  app=web',
    ],
    [
      'kubectl get pods -o wide',
      'NAME  READY  STATUS  RESTARTS  AGE  IP  NODE  NOMINATED NODE  READINESS GATES\nweb-<hash>-<id>  1/1  Running  0  <age>  <ip>  <node>  <none>  <none>',
    ],
    [
      'kubectl get pods -o jsonpath=\'{.items[0].status.conditions[?(@.type=="Ready")]}\'',
      '{"lastProbeTime":null,"lastTransitionTime":"<time>","observedGeneration":1,"status":"True","type":"Ready"}',
    ],
    ['kubectl get pods -l app=web -L app --no-headers', 'web-<hash>-<id>  1/1  Running  0  <age>  web'],
    [
      'kubectl get pods --field-selector status.phase=Running -o custom-columns=P:.status.phase',
      'P\nRunning',
    ],
    [
      'kubectl get pods --field-selector foo=bar',
      'Error from server (BadRequest): Unable to find "/v1, Resource=pods" that match label selector "", field selector "foo=bar": field label not supported: foo',
      1,
    ],
    ['kubectl get pods nope', 'Error from server (NotFound): pods "nope" not found', 1],
    ['kubectl get nothing', 'error: the server doesn\'t have a resource type "nothing"', 1],
    ['kubectl get pods -n nope', 'No resources found in nope namespace.'],
    ['kubectl create namespace other', 'namespace/other created'],
    ['kubectl create configmap c --from-literal=k=1', 'configmap/c created'],
    [
      'kubectl create configmap Bad_Name --from-literal=k=1',
      `error: failed to create configmap: ConfigMap "Bad_Name" is invalid: ${INVALID_NAME}`,
      1,
    ],
    [
      'kubectl create configmap d --from-literal=k=1 --dry-run=server',
      'configmap/d created (server dry run)',
    ],
    ['kubectl create secret generic s --from-literal=p=w', 'secret/s created'],
    ['kubectl create serviceaccount sa', 'serviceaccount/sa created'],
    ['kubectl create token sa', '<token>'],
    [
      'kubectl create token sa --duration=1m',
      'error: failed to create token: TokenRequest.authentication.k8s.io "sa" is invalid: spec.expirationSeconds: Invalid value: 60: may not specify a duration less than 10 minutes',
      1,
    ],
    ['kubectl create service nodeport np --tcp=80 --node-port=30999', 'service/np created'],
    [
      'kubectl create service nodeport np2 --tcp=80 --node-port=30999',
      'error: failed to create NodePort service: Service "np2" is invalid: spec.ports[0].nodePort: Invalid value: 30999: provided port is already allocated',
      1,
    ],
    ['kubectl expose deployment web --port=80 --type=LoadBalancer', 'service/web exposed'],
    [
      'kubectl get services -o wide',
      'NAME  TYPE  CLUSTER-IP  EXTERNAL-IP  PORT(S)  AGE  SELECTOR\nkubernetes  ClusterIP  10.96.0.1  <none>  443/TCP  <age>  <none>\nnp  NodePort  <ip>  <none>  80:30999/TCP  <age>  app=np\nweb  LoadBalancer  <ip>  <pending>  80:<port>/TCP  <age>  app=web',
    ],
    [
      'head -c 4000000 /dev/zero > $HOME/big; kubectl create configmap big --from-file=$HOME/big',
      'error: failed to create configmap: Request entity too large: limit is 3145728',
      1,
    ],
  ],
  'apply, diff, patch, edit': [
    [
      `kubectl apply -f - <<< '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":"1"}}'`,
      'configmap/a created',
    ],
    [
      `kubectl apply -f - <<< '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":"1"}}'`,
      'configmap/a unchanged',
    ],
    [
      `kubectl apply -f - <<< '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"y":"2"}}'`,
      'configmap/a configured',
    ],
    ["kubectl get configmap a -o jsonpath='{.data}'", '{"y":"2"}'],
    [
      `kubectl apply -f - <<< '{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"l1"}},{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"l2"}}]}'`,
      'configmap/l1 created\nconfigmap/l2 created',
    ],
    [
      `kubectl apply -f - <<< '{"apiVersion":"v1","kind":"Nope","metadata":{"name":"x"}}'`,
      'error: resource mapping not found for name: "x" namespace: "" from "STDIN": no matches for kind "Nope" in version "v1"\nensure CRDs are installed first',
      1,
    ],
    [
      `kubectl apply -f - <<< '{"apiVersion":"example.com/v1","kind":"Nope","metadata":{"name":"x"}}'`,
      'error: resource mapping not found for name: "x" namespace: "" from "STDIN": no matches for kind "Nope" in version "example.com/v1"\nensure CRDs are installed first',
      1,
    ],
    [
      `kubectl apply -f - <<< '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"spec":{"foo":1,"containers":[{"name":"c","imagge":"x"}]}}'`,
      'Error from server (BadRequest): error when creating "STDIN": Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field "spec.containers[0].imagge", unknown field "spec.foo"',
      1,
    ],
    [
      `kubectl apply --server-side -f - <<< '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"spec":{"foo":1,"containers":[{"name":"c","imagge":"x"}]}}'`,
      'Error from server: failed to create typed patch object (default/x; /v1, Kind=Pod): errors:\n  .spec.containers[name="c"].imagge: field not declared in schema\n  .spec.foo: field not declared in schema',
      1,
    ],
    [
      `kubectl apply -f - <<< '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"spec":{"restartPolicy":"X","containers":[{"name":"c","image":"x"}]}}'`,
      'The Pod "x" is invalid: spec.restartPolicy: Unsupported value: "X": supported values: "Always", "OnFailure", "Never"',
      1,
    ],
    [`kubectl patch configmap c -p '{"data":{"k":"2"}}'`, 'configmap/c patched'],
    [`kubectl patch configmap c -p '{"data":{"k":"2"}}'`, 'configmap/c patched (no change)'],
    [`kubectl patch configmap c --type=merge -p '{"data":{"k":null,"m":"1"}}'`, 'configmap/c patched'],
    [
      `kubectl patch configmap c --type=json -p '[{"op":"remove","path":"/data/nope"}]'`,
      'The request is invalid: the server rejected our request due to an error in our request',
      1,
    ],
    [
      `kubectl patch configmap c -p '{"data":{"k":1}}'`,
      'The request is invalid: patch: Invalid value: "map[data:map[k:1]]": cannot convert int64 to string',
      1,
    ],
    [
      `kubectl patch deployment web -p '{"spec":{"replicas":"3"}}'`,
      'The request is invalid: patch: Invalid value: "map[spec:map[replicas:3]]": unrecognized type: int32',
      1,
    ],
    [
      `kubectl patch service web -p '{"spec":{"clusterIP":"10.96.0.77"}}'`,
      'The Service "web" is invalid: spec.clusterIPs[0]: Invalid value: ["10.96.0.77"]: may not change once set',
      1,
    ],
    [
      "KUBE_EDITOR='sed -i s/nginx:1.29/nginx:alpine/' kubectl edit deployment web",
      'deployment.apps/web edited',
    ],
    ['KUBE_EDITOR=true kubectl edit deployment web', 'Edit cancelled, no changes made.'],
    ['kubectl label configmap c a=b', 'configmap/c labeled'],
    ['kubectl label configmap c a=c', "error: 'a' already has a value (b), and --overwrite is false", 1],
    ['kubectl annotate configmap c a=b', 'configmap/c annotated'],
    ['kubectl get configmap c -o json | kubectl replace -f -', 'configmap/c replaced'],
  ],
  'rollout and scale': [
    ['kubectl rollout status deployment/web | tail -1', 'deployment "web" successfully rolled out'],
    [
      'kubectl rollout history deployment/web',
      'deployment.apps/web\nREVISION  CHANGE-CAUSE\n1  <none>\n2  <none>',
    ],
    ['kubectl rollout undo deployment/web', 'deployment.apps/web rolled back'],
    [
      'kubectl rollout undo deployment/web --to-revision=9',
      'error: unable to find specified revision 9 in history',
      1,
    ],
    ['kubectl rollout pause deployment/web', 'deployment.apps/web paused'],
    [
      'kubectl rollout restart deployment/web',
      'error: deployments.apps "web" can\'t restart paused deployment (run rollout resume first)',
      1,
    ],
    ['kubectl rollout resume deployment/web', 'deployment.apps/web resumed'],
    ['kubectl set image deployment/web nginx=nginx:1.29', ''],
    ['kubectl scale deployment web --replicas=2', 'deployment.apps/web scaled'],
    [
      'kubectl scale deployment web --replicas=1 --current-replicas=5',
      'error: Expected replicas to be 5, was 2',
      1,
    ],
    [
      'kubectl wait deployment web --for=condition=Available --timeout=30s',
      'deployment.apps/web condition met',
    ],
  ],
  'run, exec, logs, cp, debug': [
    ['kubectl run b --image=busybox:1.37 --command -- sleep 100000', 'pod/b created'],
    ['kubectl wait --for=condition=Ready pod/b --timeout=30s', 'pod/b condition met'],
    ['kubectl exec b -- sh -c "exit 7"', 'command terminated with exit code 7', 7],
    ['kubectl exec b -- ps', 'PID  USER  TIME  COMMAND\n  1 root  0:00 sleep 100000\n  7 root  0:00 ps'],
    [
      '[ "$(kubectl exec b -- uname -r)" = "$(kubectl get node -o jsonpath={.items[0].status.nodeInfo.kernelVersion})" ]',
      '',
    ],
    [
      'kubectl exec b -- nope',
      'error: Internal error occurred: error executing command in container: failed to exec in container: failed to start exec "<hex>": OCI runtime exec failed: exec failed: unable to start container process: exec: "nope": executable file not found in $PATH',
      1,
    ],
    ['kubectl exec b -c nope -- ls', 'error: container nope is not valid for pod b out of: b', 1],
    ['echo hi > $HOME/f && kubectl cp $HOME/f b:/tmp/f && kubectl exec b -- cat /tmp/f', 'hi'],
    ['kubectl cp b:/tmp/f $HOME/g && cat $HOME/g', "tar: removing leading '/' from member names\nhi"],
    // kubectl may be told that the other end is gone while it still sends.
    [
      "kubectl cp $HOME/f b:/no/such/f 2>&1 | grep -v 'Copying stdin failed'",
      "tar: can't change directory to '/no/such': No such file or directory\ncommand terminated with exit code 1",
      1,
    ],
    ['kubectl run e --image=busybox:1.37 --restart=Never -- sh -c "echo out; exit 3"', 'pod/e created'],
    ["kubectl wait pod/e --for=jsonpath='{.status.phase}'=Failed --timeout=30s", 'pod/e condition met'],
    ['kubectl get pod e', 'NAME  READY  STATUS  RESTARTS  AGE\ne  0/1  Error  0  <age>'],
    ['kubectl logs e', 'out'],
    [
      'kubectl logs e --previous',
      'Error from server (BadRequest): previous terminated container "e" in pod "e" not found',
      1,
    ],
    [
      'kubectl logs nope',
      'error: error from server (NotFound): pods "nope" not found in namespace "default"',
      1,
    ],
    ['kubectl debug b --image=busybox:1.37 -c dbg -- sleep 1', ''],
    ["kubectl get pod b -o jsonpath='{.spec.ephemeralContainers[*].name}'", 'dbg'],
    ['kubectl delete pod e --now', 'pod "e" deleted from default namespace'],
    [
      'kubectl delete pod b --force',
      'pod "b" force deleted from default namespace\nWarning: Immediate deletion does not wait for confirmation that the running resource has been terminated. The resource may continue to run on the cluster indefinitely.',
    ],
    ['kubectl get pod b', 'Error from server (NotFound): pods "b" not found', 1],
  ],
  'who may': [
    ['kubectl auth can-i create pods', 'yes'],
    ['kubectl auth can-i create pods --as=bob', 'no', 1],
    ['kubectl create role r --verb=get,list --resource=pods', 'role.rbac.authorization.k8s.io/r created'],
    [
      'kubectl create rolebinding rb --role=r --serviceaccount=default:sa',
      'rolebinding.rbac.authorization.k8s.io/rb created',
    ],
    ['kubectl auth can-i list pods --as=system:serviceaccount:default:sa', 'yes'],
    [
      'kubectl delete pod b --as=system:serviceaccount:default:sa',
      'Error from server (Forbidden): pods "b" is forbidden: User "system:serviceaccount:default:sa" cannot delete resource "pods" in API group "" in the namespace "default"',
      1,
    ],
    ['kubectl --token=bad get pods', 'error: You must be logged in to the server (Unauthorized)', 1],
    [
      `openssl req -new -newkey rsa:2048 -nodes -keyout $HOME/k.pem -subj /CN=jane/O=devs -out $HOME/k.csr 2> /dev/null; kubectl apply -f - <<< '{"apiVersion":"certificates.k8s.io/v1","kind":"CertificateSigningRequest","metadata":{"name":"jane"},"spec":{"request":"'$(base64 -w0 $HOME/k.csr)'","signerName":"kubernetes.io/kube-apiserver-client","usages":["client auth"]}}'`,
      'certificatesigningrequest.certificates.k8s.io/jane created',
    ],
    ['kubectl certificate approve jane', 'certificatesigningrequest.certificates.k8s.io/jane approved'],
    [
      "kubectl wait csr/jane --for=jsonpath='{.status.certificate}' --timeout=10s",
      'certificatesigningrequest.certificates.k8s.io/jane condition met',
    ],
  ],
  'nodes and removal': [
    [
      'kubectl create poddisruptionbudget web --selector=app=web --min-available=2',
      'poddisruptionbudget.policy/web created',
    ],
    [
      "kubectl wait pdb/web --for=jsonpath='{.status.currentHealthy}'=2 --timeout=10s",
      'poddisruptionbudget.policy/web condition met',
    ],
    [
      'kubectl get poddisruptionbudgets',
      'NAME  MIN AVAILABLE  MAX UNAVAILABLE  ALLOWED DISRUPTIONS  AGE\nweb  2  N/A  0  <age>',
    ],
    [
      "kubectl drain $(kubectl get node -o name) --ignore-daemonsets --force --pod-selector=app=web --timeout=2s 2>&1 | grep -o 'error when evicting.*' | sed -n 1p",
      'error when evicting pods/"web-<hash>-<id>" -n "default" (will retry after 5s): Cannot evict pod as it would violate the pod\'s disruption budget.',
      1,
    ],
    [
      'kubectl delete poddisruptionbudget web',
      'poddisruptionbudget.policy "web" deleted from default namespace',
    ],
    ['kubectl uncordon $(kubectl get node -o name)', 'node/<node> uncordoned'],
    ['kubectl cordon $(kubectl get node -o name)', 'node/<node> cordoned'],
    [
      'kubectl get nodes',
      'NAME  STATUS  ROLES  AGE  VERSION\n<node>  Ready,SchedulingDisabled  control-plane  <age>  v1.36.3',
    ],
    [
      'kubectl drain $(kubectl get node -o name) --ignore-daemonsets --force --delete-emptydir-data --timeout=60s 2> /dev/null | tail -1',
      'node/<node> drained',
    ],
    [
      'kubectl get pods --no-headers',
      'web-<hash>-<id>  0/1  Pending  0  <age>\nweb-<hash>-<id>  0/1  Pending  0  <age>',
    ],
    ['kubectl uncordon $(kubectl get node -o name)', 'node/<node> uncordoned'],
    [
      'kubectl wait deployment web --for=condition=Available --timeout=30s',
      'deployment.apps/web condition met',
    ],
    ['kubectl taint nodes --all k=v:NoSchedule', 'node/<node> tainted'],
    ['kubectl taint nodes --all k-', 'node/<node> untainted'],
    ['kubectl delete service kubernetes', 'service "kubernetes" deleted from default namespace'],
    [
      'kubectl get service kubernetes',
      'NAME  TYPE  CLUSTER-IP  EXTERNAL-IP  PORT(S)  AGE\nkubernetes  ClusterIP  10.96.0.1  <none>  443/TCP  <age>',
    ],
    ['kubectl create deployment w --image=nginx:1.29 --replicas=2 -n other', 'deployment.apps/w created'],
    ['kubectl rollout status deployment/w -n other | tail -1', 'deployment "w" successfully rolled out'],
    ['kubectl delete namespace other --timeout=60s', 'namespace "other" deleted'],
    ['kubectl get all -n other', 'No resources found in other namespace.'],
    [
      'kubectl delete deployment web --cascade=foreground',
      'deployment.apps "web" deleted from default namespace',
    ],
    ['kubectl get pods,replicasets', 'No resources found in default namespace.'],
    ['kubectl delete configmap nope', 'Error from server (NotFound): configmaps "nope" not found', 1],
  ],
  'explain and raw': [
    ['kubectl explain pod.nope', 'KIND:  Pod\nVERSION:  v1\n\nerror: field "nope" does not exist', 1],
    ['kubectl get --raw /healthz', 'ok'],
    [
      'kubectl get --raw /nope',
      'Error from server (NotFound): the server could not find the requested resource',
      1,
    ],
    ['kubectl top nodes', 'error: Metrics API not available', 1],
    [
      'kubectl __complete get configmaps l',
      'l1\nl2\n:4\nCompletion ended with directive: ShellCompDirectiveNoFileComp',
    ],
  ],
};

describe.sequential('kubectl on a tenant', () => {
  let product: Product;
  let tenant: Kubectl;
  let management: Kubectl;

  beforeAll(async () => {
    product = await startProduct();
    tenant = await product.kubectl();
    management = await product.kubectl('management');
  });
  afterAll(async () => {
    await product?.stop();
    if (product) rmSync(product.dataDir, { recursive: true, force: true });
  });

  for (const [what, rows] of Object.entries(TABLES)) {
    it(what, { timeout: 120_000 }, async () => {
      for (const row of rows) expectRow(await tenant.bash(row[0]), row);
    });
  }

  it('gives the student of the management cluster a namespace, and no more', async () => {
    const user = 'system:serviceaccount:handson-solo-<id>:kubeconfig-<hash>';
    const rows: readonly Row[] = [
      [
        'kubectl get nodes',
        `Error from server (Forbidden): nodes is forbidden: User "${user}" cannot list resource "nodes" in API group "" at the cluster scope`,
        1,
      ],
      [
        'kubectl create deployment x --image=nginx',
        `error: failed to create deployment: deployments.apps is forbidden: User "${user}" cannot create resource "deployments" in API group "apps" in the namespace "handson-solo-<id>"`,
        1,
      ],
      ['kubectl get kubevirtmachines', 'NAME  AGE  READY\n<node>  <age>  true'],
      [
        'kubectl create configmap mine --from-literal=a=b && kubectl delete configmap mine',
        'configmap/mine created\nconfigmap "mine" deleted from handson-solo-<id> namespace',
      ],
    ];
    for (const row of rows) expectRow(await management.bash(row[0]), row);
  });

  it('installs, upgrades and removes a chart with helm', { timeout: 60_000 }, async () => {
    const chart = `mkdir -p $HOME/ch/templates && cd $HOME && printf 'apiVersion: v2\\nname: ch\\nversion: 0.1.0\\n' > ch/Chart.yaml && printf 'size: 1\\n' > ch/values.yaml && cat > ch/templates/d.yaml <<'END'
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}}
spec:
  replicas: {{ .Values.size }}
  selector: {matchLabels: {app: rel}}
  template:
    metadata: {labels: {app: rel}}
    spec: {containers: [{name: c, image: "nginx:1.29"}]}
END
`;
    const rows: readonly Row[] = [
      [`${chart}helm install rel ./ch --wait --timeout 30s | head -1`, 'NAME: rel'],
      [
        'cd $HOME && helm upgrade rel ./ch --set size=2 --wait --timeout 30s | head -1',
        'Release "rel" has been upgraded. Happy Helming!',
      ],
      ['kubectl get deployment rel', 'NAME  READY  UP-TO-DATE  AVAILABLE  AGE\nrel  2/2  2  2  <age>'],
      ['helm uninstall rel --wait', 'release "rel" uninstalled'],
      ['helm list --short', ''],
    ];
    for (const row of rows) expectRow(await tenant.bash(row[0]), row);
  });
});
