import http from 'node:http';
import { isIP } from 'node:net';
import type { Duplex } from 'node:stream';
import tls from 'node:tls';
import { FileError, NetworkError, type Process, type Program } from '../contract.ts';
import { joinPath } from '../files/path.ts';
import { type CurlOptions, CurlUsageError, parseCurlOptions } from './curl-options.ts';
import { CurlFailure, outputOf, type Transfer, writeOut } from './curl-output.ts';

export const CURL_VERSION = '8.11.0';
/** What one answer may bring. */
const MAX_BODY = 64 * 1024 * 1024;
/** curl's own default: how long it waits to connect. */
const CONNECT_TIMEOUT = 300_000;

/** curl: HTTP(S) over the simulated network, with the flags, messages and exit codes people script with. */
export const curl: Program = {
  async run(process) {
    let options: CurlOptions;
    try {
      options = parseCurlOptions(process.argv.slice(1));
    } catch (error) {
      if (!(error instanceof CurlUsageError)) throw error;
      process.stderr.write(
        `curl: ${error.message}\ncurl: try 'curl --help' or 'curl --manual' for more information\n`,
      );
      return 2;
    }
    if (options.version) {
      process.stdout.write(
        `curl ${CURL_VERSION} (x86_64-pc-linux-musl) libcurl/${CURL_VERSION}\nRelease-Date: 2024-11-06\nProtocols: http https\nFeatures: HTTPS-proxy IPv6 SSL\n`,
      );
      return 0;
    }
    if (options.urls.length === 0) {
      process.stderr.write(
        "curl: (2) no URL specified\ncurl: try 'curl --help' or 'curl --manual' for more information\n",
      );
      return 2;
    }
    let status = 0;
    for (const url of options.urls) status = await transferWithRetries(process, options, url);
    return status;
  },
};

const RETRIED = new Set([6, 7, 28]);

async function transferWithRetries(process: Process, options: CurlOptions, url: string): Promise<number> {
  for (let left = options.retry; ; left -= 1) {
    const status = await transferOnce(process, options, url);
    if (left <= 0 || !RETRIED.has(status)) return status;
    process.stderr.write(
      `Warning: Problem: timeout. Will retry in ${options.retryDelay / 1000} seconds. ${left} retries left.\n`,
    );
    await process.clock.sleep(options.retryDelay, process.signal);
  }
}

async function transferOnce(process: Process, options: CurlOptions, url: string): Promise<number> {
  const limit = new AbortController();
  const onKill = (): void => limit.abort();
  process.signal.addEventListener('abort', onKill, { once: true });
  const started = process.clock.now();
  const transfer: Transfer = {
    code: 0,
    ip: '',
    port: 0,
    localIp: process.network.ips[0] ?? '',
    bytes: 0,
    headerBytes: 0,
    redirects: 0,
    url,
    contentType: '',
    connects: 0,
    started,
    connectedAt: 0,
    firstByteAt: 0,
    endedAt: 0,
    scheme: 'http',
  };
  const timer =
    options.maxTime === undefined ? undefined : process.clock.after(options.maxTime, () => limit.abort());
  let exitCode = 0;
  try {
    await follow(process, options, url, transfer, limit.signal);
    if ((options.fail || options.failWithBody) && transfer.code >= 400)
      throw new CurlFailure(22, `The requested URL returned error: ${transfer.code}`);
  } catch (error) {
    if (process.signal.aborted) return 130;
    const failure = limit.signal.aborted
      ? new CurlFailure(
          28,
          `Operation timed out after ${process.clock.now() - started} milliseconds with ${transfer.bytes} bytes received`,
        )
      : error;
    if (!(failure instanceof CurlFailure)) throw failure;
    exitCode = failure.exitCode;
    if (!options.silent || options.showError)
      process.stderr.write(`curl: (${exitCode}) ${failure.message}\n`);
  } finally {
    timer?.cancel();
    process.signal.removeEventListener('abort', onKill);
  }
  transfer.endedAt = process.clock.now();
  if (options.writeOut !== undefined)
    process.stdout.write(writeOut(options.writeOut, transfer, exitCode, options));
  return exitCode;
}

function parseUrl(text: string): URL {
  const full = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`;
  let url: URL;
  try {
    url = new URL(full);
  } catch (error) {
    if (error instanceof TypeError)
      throw new CurlFailure(3, 'URL rejected: Malformed input to a URL function');
    throw error;
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw new CurlFailure(1, `Protocol "${url.protocol.slice(0, -1)}" not supported`);
  return url;
}

async function follow(
  process: Process,
  options: CurlOptions,
  text: string,
  transfer: Transfer,
  signal: AbortSignal,
): Promise<void> {
  let url = parseUrl(text);
  let method =
    options.method ?? (options.head ? 'HEAD' : options.data.length > 0 && !options.get ? 'POST' : 'GET');
  let body = options.data.length > 0 ? bodyOf(process, options) : undefined;
  if (options.get && body !== undefined) {
    url.search = url.search ? `${url.search}&${body.toString()}` : body.toString();
    body = undefined;
  }
  for (;;) {
    transfer.url = url.href;
    transfer.scheme = url.protocol.slice(0, -1);
    const location = await request(process, options, url, method, body, transfer, signal);
    if (!options.follow || location === undefined) return;
    transfer.redirects += 1;
    if (transfer.redirects > options.maxRedirects)
      throw new CurlFailure(47, `Maximum (${options.maxRedirects}) redirects followed`);
    url = parseUrl(new URL(location, url).href);
    if (transfer.code !== 307 && transfer.code !== 308 && method === 'POST') {
      method = 'GET';
      body = undefined;
    }
  }
}

function bodyOf(process: Process, options: CurlOptions): Buffer {
  const parts = options.data.map((data) => {
    if (data.startsWith('\0')) return Buffer.from(data.slice(1));
    if (!data.startsWith('@')) return Buffer.from(data);
    try {
      return Buffer.from(process.files.readFile(joinPath(process.cwd, data.slice(1))));
    } catch (error) {
      if (error instanceof FileError) throw new CurlFailure(26, `Failed to open ${data.slice(1)}`);
      throw error;
    }
  });
  return Buffer.concat(parts.flatMap((part, index) => (index > 0 ? [Buffer.from('&'), part] : [part])));
}

async function open(
  process: Process,
  options: CurlOptions,
  url: URL,
  transfer: Transfer,
  signal: AbortSignal,
): Promise<Duplex> {
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80));
  const started = process.clock.now();
  const limit = new AbortController();
  const timer = process.clock.after(options.connectTimeout ?? CONNECT_TIMEOUT, () => limit.abort());
  const either = AbortSignal.any([signal, limit.signal]);
  const note = (text: string): void => void (options.verbose && process.stderr.write(`* ${text}\n`));
  try {
    const fixed = options.resolve.find((one) => one.host === host && one.port === port)?.ip;
    const ips = fixed
      ? [fixed]
      : isIP(host)
        ? [host]
        : await process.network.resolve(host, { signal: either });
    const ip = ips[0] ?? host;
    if (!isIP(host)) note(`Host ${host}:${port} was resolved.`);
    transfer.ip = ip;
    transfer.port = port;
    note(`  Trying ${ip}:${port}...`);
    const raw = await process.network.connect(ip, port, { signal: either });
    transfer.connects += 1;
    transfer.connectedAt = process.clock.now();
    note(`Connected to ${host} (${ip}) port ${port}`);
    return url.protocol === 'https:' ? await secure(process, options, raw, host) : raw;
  } catch (error) {
    if (signal.aborted) throw error;
    if (limit.signal.aborted)
      throw new CurlFailure(
        28,
        `Failed to connect to ${host} port ${port} after ${process.clock.now() - started} ms: Timeout was reached`,
      );
    if (!(error instanceof NetworkError)) throw error;
    if (error.code === 'ENOTFOUND') throw new CurlFailure(6, `Could not resolve host: ${host}`);
    if (error.code === 'EAI_AGAIN') throw new CurlFailure(6, `Could not resolve host: ${host}`);
    if (error.code === 'ETIMEDOUT')
      throw new CurlFailure(
        28,
        `Failed to connect to ${host} port ${port} after ${process.clock.now() - started} ms: Could not connect to server`,
      );
    throw new CurlFailure(
      7,
      `Failed to connect to ${host} port ${port} after ${process.clock.now() - started} ms: Could not connect to server`,
    );
  } finally {
    timer.cancel();
  }
}

function secure(process: Process, options: CurlOptions, raw: Duplex, host: string): Promise<Duplex> {
  const ca =
    options.caFile !== undefined && process.files.exists(joinPath(process.cwd, options.caFile))
      ? Buffer.from(process.files.readFile(joinPath(process.cwd, options.caFile)))
      : undefined;
  return new Promise((resolve, reject) => {
    // The only trust there is: what `--cacert` names; nothing of the machine this lab runs on.
    const socket = tls.connect({
      socket: raw,
      rejectUnauthorized: !options.insecure,
      ca: ca ? [ca] : [],
      ...(isIP(host) ? {} : { servername: host }),
    });
    socket.once('secureConnect', () => resolve(socket));
    socket.once('error', (error: Error) => {
      const untrusted = /certificate|self.signed|issuer/i.test(error.message);
      reject(
        untrusted
          ? new CurlFailure(
              60,
              `SSL certificate problem: ${error.message}\nMore details here: https://curl.se/docs/sslcerts.html`,
            )
          : new CurlFailure(35, `TLS connect error: ${error.message}`),
      );
    });
  });
}

/** One request; resolves with where it redirects to. */
async function request(
  process: Process,
  options: CurlOptions,
  url: URL,
  method: string,
  body: Buffer | undefined,
  transfer: Transfer,
  signal: AbortSignal,
): Promise<string | undefined> {
  const stream = await open(process, options, url, transfer, signal);
  const headers: [string, string][] = [
    ['Host', url.host],
    ['User-Agent', options.userAgent ?? `curl/${CURL_VERSION}`],
    ['Accept', '*/*'],
  ];
  const set = (name: string, value: string): void => {
    const existing = headers.findIndex(([other]) => other.toLowerCase() === name.toLowerCase());
    if (existing >= 0) headers.splice(existing, 1);
    if (value !== '') headers.push([name, value]);
  };
  const user = options.user ?? (url.username ? `${url.username}:${url.password}` : undefined);
  if (user !== undefined) set('Authorization', `Basic ${Buffer.from(user).toString('base64')}`);
  if (body) {
    set('Content-Length', String(body.length));
    set('Content-Type', 'application/x-www-form-urlencoded');
  }
  for (const header of options.headers) {
    const colon = header.indexOf(':');
    if (colon > 0) set(header.slice(0, colon), header.slice(colon + 1).trim());
  }
  const path = `${url.pathname}${url.search}`;
  if (options.verbose)
    process.stderr.write(
      [`${method} ${path} HTTP/1.1`, ...headers.map(([name, value]) => `${name}: ${value}`), '']
        .map((line) => `> ${line}\r\n`)
        .join(''),
    );
  const aborted = (): void => void stream.destroy();
  signal.addEventListener('abort', aborted, { once: true });
  try {
    const answer = await new Promise<http.IncomingMessage>((resolve, reject) => {
      const outgoing = http.request({
        createConnection: () => stream,
        method,
        path,
        headers: headers.flat(),
        setHost: false,
      });
      outgoing.once('response', resolve);
      outgoing.once('error', () => reject(new CurlFailure(52, 'Empty reply from server')));
      outgoing.end(body);
    });
    return await receive(process, options, answer, transfer, signal);
  } finally {
    signal.removeEventListener('abort', aborted);
    stream.destroy();
  }
}

async function receive(
  process: Process,
  options: CurlOptions,
  answer: http.IncomingMessage,
  transfer: Transfer,
  signal: AbortSignal,
): Promise<string | undefined> {
  transfer.code = answer.statusCode ?? 0;
  transfer.contentType = answer.headers['content-type'] ?? '';
  transfer.firstByteAt = process.clock.now();
  const lines = [`HTTP/${answer.httpVersion} ${answer.statusCode} ${answer.statusMessage}`];
  for (let i = 0; i < answer.rawHeaders.length; i += 2)
    lines.push(`${answer.rawHeaders[i]}: ${answer.rawHeaders[i + 1]}`);
  const head = `${lines.join('\r\n')}\r\n\r\n`;
  transfer.headerBytes += head.length;
  if (options.verbose) process.stderr.write([...lines, ''].map((line) => `< ${line}\r\n`).join(''));
  const location =
    answer.statusCode && answer.statusCode >= 300 && answer.statusCode < 400
      ? answer.headers.location
      : undefined;
  const skipped = options.fail && transfer.code >= 400;
  const redirected = options.follow && location !== undefined;
  const write = outputOf(process, options, transfer.url);
  if (options.include || options.head) await write(Buffer.from(head));
  transfer.bytes = 0;
  try {
    for await (const chunk of answer as AsyncIterable<Buffer>) {
      transfer.bytes += chunk.length;
      if (transfer.bytes > MAX_BODY) throw new CurlFailure(63, 'Maximum file size exceeded');
      if (!skipped && !redirected) await write(chunk);
      signal.throwIfAborted();
    }
  } catch (error) {
    if (error instanceof CurlFailure || signal.aborted) throw error;
    throw new CurlFailure(18, `end of response with ${transfer.bytes} bytes missing`);
  }
  if (options.verbose)
    process.stderr.write(`* Connection #0 to host ${new URL(transfer.url).hostname} left intact\n`);
  return location;
}
