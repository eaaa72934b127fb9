// pki: keys, certificate authorities and certificates (ECDSA P-256, PEM in and out).
// Every certificate of the lab is made here: the listener's, each cluster's own authorities, client certificates of
// kubelets and administrators, signed requests. P-256 because an RSA key costs a quarter of a second.
// It knows nothing of Kubernetes: subject, usages and names are the caller's business, and so is where PEMs are kept.
export {
  type Authority,
  type CertificateRequest,
  certificateFingerprint,
  createAuthority,
  createKeyPair,
  type IssueOptions,
  issueCertificate,
  type KeyPair,
  parseRequest,
  publicKeyFromPrivate,
  RequestFormatError,
  signRequest,
} from './certificates.ts';
