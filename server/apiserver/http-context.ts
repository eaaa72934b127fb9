import type { X509Certificate } from 'node:crypto';

/** What the listener knows of a request beside the request itself. */
export interface HttpContext {
  /** Path and query below the cluster's prefix. */
  readonly path: string;
  /** The client's certificate as TLS received it; trusted or not is judged here. */
  readonly peerCertificate?: X509Certificate | undefined;
}
