import { FileError, type Process } from '../contract.ts';
import { joinPath } from '../files/path.ts';
import type { CurlOptions } from './curl-options.ts';

/** A transfer that failed: curl's exit code and its words. */
export class CurlFailure extends Error {
  override readonly name = 'CurlFailure';
  readonly exitCode: number;
  constructor(exitCode: number, message: string) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** What one transfer did, for `-w`. */
export interface Transfer {
  code: number;
  ip: string;
  port: number;
  localIp: string;
  bytes: number;
  headerBytes: number;
  redirects: number;
  url: string;
  contentType: string;
  connects: number;
  started: number;
  connectedAt: number;
  firstByteAt: number;
  endedAt: number;
  scheme: string;
}

/** Where the body goes. */
export function outputOf(
  process: Process,
  options: CurlOptions,
  url: string,
): (chunk: Buffer) => Promise<void> {
  const name = options.output ?? (options.remoteName ? new URL(url).pathname.split('/').at(-1) : undefined);
  if (name === undefined || name === '-' || name === '/dev/stdout') {
    return (chunk) =>
      new Promise((resolve) => {
        if (process.stdout.destroyed || process.stdout.writableEnded) resolve();
        else process.stdout.write(chunk, () => resolve());
      });
  }
  if (name === '/dev/null') return async () => undefined;
  const path = joinPath(process.cwd, name);
  const parts: Buffer[] = [];
  return async (chunk) => {
    parts.push(chunk);
    try {
      process.files.writeFile(path, Buffer.concat(parts));
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      throw new CurlFailure(23, `client returned ERROR on write, ${chunk.length} was passed, 0 returned`);
    }
  };
}

/** `-w`'s format filled in. */
export function writeOut(format: string, transfer: Transfer, exitCode: number, options: CurlOptions): string {
  const since = (time: number): string => ((time === 0 ? 0 : time - transfer.started) / 1000).toFixed(6);
  const values: Readonly<Record<string, string>> = {
    http_code: String(transfer.code).padStart(3, '0'),
    response_code: String(transfer.code).padStart(3, '0'),
    size_download: String(transfer.bytes),
    size_header: String(transfer.headerBytes),
    remote_ip: transfer.ip,
    remote_port: String(transfer.port),
    local_ip: transfer.localIp,
    url_effective: transfer.url,
    url: transfer.url,
    content_type: transfer.contentType,
    num_redirects: String(transfer.redirects),
    num_connects: String(transfer.connects),
    exitcode: String(exitCode),
    scheme: transfer.scheme,
    method: options.method ?? (options.head ? 'HEAD' : 'GET'),
    http_version: '1.1',
    time_total: since(transfer.endedAt),
    time_connect: since(transfer.connectedAt),
    time_namelookup: since(transfer.connectedAt),
    time_starttransfer: since(transfer.firstByteAt),
    time_pretransfer: since(transfer.connectedAt),
    time_appconnect: '0.000000',
    redirect_url: '',
    errormsg: '',
    speed_download: '0',
    filename_effective: options.output ?? '',
  };
  return format.replace(/%\{(\w+)\}|%%|\\([nrt\\])/g, (all, name?: string, escape?: string) => {
    if (all === '%%') return '%';
    if (escape !== undefined) return { n: '\n', r: '\r', t: '\t', '\\': '\\' }[escape] ?? '';
    return values[name ?? ''] ?? '';
  });
}
