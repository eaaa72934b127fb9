// certificates: CertificateSigningRequests approved, signed and cleared away.
// The approver lets kubelets have client certificates when a SubjectAccessReview says they may ask for them; the signer
// signs approved requests of kube-apiserver-client, kube-apiserver-client-kubelet and kubelet-serving with the cluster's
// authority, and marks requests that break a signer's rules as Failed; the cleaner deletes old ones.
// Promises: nothing is signed that is not approved; a request is answered once.
// Leaves out: the legacy-unknown signer, approval of serving certificates (a person's or another approver's task).
// Models kubernetes/pkg/controller/certificates.
export { createCertificateApprovingController } from './approving-controller.ts';
export { createCertificateCleaner } from './cleaner.ts';
export { createCertificateSigningController } from './signing-controller.ts';
