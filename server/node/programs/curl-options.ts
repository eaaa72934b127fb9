/** What a curl command line says. */
export interface CurlOptions {
  urls: string[];
  silent: boolean;
  showError: boolean;
  output: string | undefined;
  remoteName: boolean;
  writeOut: string | undefined;
  verbose: boolean;
  include: boolean;
  head: boolean;
  method: string | undefined;
  headers: string[];
  data: string[];
  get: boolean;
  maxTime: number | undefined;
  connectTimeout: number | undefined;
  insecure: boolean;
  follow: boolean;
  maxRedirects: number;
  fail: boolean;
  failWithBody: boolean;
  user: string | undefined;
  userAgent: string | undefined;
  resolve: { host: string; port: number; ip: string }[];
  retry: number;
  retryDelay: number;
  caFile: string | undefined;
  version: boolean;
  help: boolean;
}

/** curl refuses its command line: exit code 2. */
export class CurlUsageError extends Error {
  override readonly name = 'CurlUsageError';
}

type Setter = (options: CurlOptions, value: string) => void;

const FLAGS: Readonly<Record<string, Setter>> = {
  silent: (o) => {
    o.silent = true;
  },
  'show-error': (o) => {
    o.showError = true;
  },
  verbose: (o) => {
    o.verbose = true;
  },
  include: (o) => {
    o.include = true;
  },
  'show-headers': (o) => {
    o.include = true;
  },
  head: (o) => {
    o.head = true;
  },
  get: (o) => {
    o.get = true;
  },
  insecure: (o) => {
    o.insecure = true;
  },
  location: (o) => {
    o.follow = true;
  },
  fail: (o) => {
    o.fail = true;
  },
  'fail-with-body': (o) => {
    o.failWithBody = true;
  },
  'remote-name': (o) => {
    o.remoteName = true;
  },
  version: (o) => {
    o.version = true;
  },
  help: (o) => {
    o.help = true;
  },
  compressed: () => undefined,
  'no-buffer': () => undefined,
  ipv4: () => undefined,
  ipv6: () => undefined,
  'http1.1': () => undefined,
  http2: () => undefined,
  'http0.9': () => undefined,
  'no-progress-meter': () => undefined,
  'progress-bar': () => undefined,
  globoff: () => undefined,
  'path-as-is': () => undefined,
  'no-keepalive': () => undefined,
  'tlsv1.2': () => undefined,
  'tlsv1.3': () => undefined,
  'retry-connrefused': () => undefined,
  'retry-all-errors': () => undefined,
  disable: () => undefined,
  'tcp-nodelay': () => undefined,
};

const VALUES: Readonly<Record<string, Setter>> = {
  output: (o, v) => {
    o.output = v;
  },
  'write-out': (o, v) => {
    o.writeOut = v;
  },
  request: (o, v) => {
    o.method = v;
  },
  header: (o, v) => {
    o.headers.push(v);
  },
  data: (o, v) => {
    o.data.push(v);
  },
  'data-raw': (o, v) => {
    o.data.push(v.startsWith('@') ? `\0${v}` : v);
  },
  'data-binary': (o, v) => {
    o.data.push(v);
  },
  'data-urlencode': (o, v) => {
    o.data.push(encodeData(v));
  },
  json: (o, v) => {
    o.data.push(v);
    o.headers.push('Content-Type: application/json', 'Accept: application/json');
  },
  'max-time': (o, v) => {
    o.maxTime = seconds(v);
  },
  'connect-timeout': (o, v) => {
    o.connectTimeout = seconds(v);
  },
  'max-redirs': (o, v) => {
    o.maxRedirects = Number(v);
  },
  user: (o, v) => {
    o.user = v;
  },
  'user-agent': (o, v) => {
    o.userAgent = v;
  },
  url: (o, v) => {
    o.urls.push(v);
  },
  cacert: (o, v) => {
    o.caFile = v;
  },
  retry: (o, v) => {
    o.retry = Math.min(100, Number(v));
  },
  'retry-delay': (o, v) => {
    o.retryDelay = seconds(v);
  },
  referer: (o, v) => {
    o.headers.push(`Referer: ${v}`);
  },
  cookie: (o, v) => {
    o.headers.push(`Cookie: ${v}`);
  },
  resolve: (o, v) => {
    const match = /^\+?([^:]+):(\d+):(.+)$/.exec(v);
    if (match) o.resolve.push({ host: match[1] ?? '', port: Number(match[2]), ip: match[3] ?? '' });
  },
  interface: () => undefined,
  'retry-max-time': () => undefined,
  'keepalive-time': () => undefined,
  noproxy: () => undefined,
  proxy: () => undefined,
  'limit-rate': () => undefined,
  cert: () => undefined,
  key: () => undefined,
  ciphers: () => undefined,
};

const SHORT: Readonly<Record<string, string>> = {
  s: 'silent',
  S: 'show-error',
  o: 'output',
  w: 'write-out',
  v: 'verbose',
  i: 'include',
  I: 'head',
  X: 'request',
  H: 'header',
  d: 'data',
  G: 'get',
  m: 'max-time',
  k: 'insecure',
  L: 'location',
  f: 'fail',
  O: 'remote-name',
  u: 'user',
  A: 'user-agent',
  V: 'version',
  h: 'help',
  N: 'no-buffer',
  '4': 'ipv4',
  '6': 'ipv6',
  e: 'referer',
  b: 'cookie',
  x: 'proxy',
  g: 'globoff',
  q: 'disable',
  '#': 'progress-bar',
  E: 'cert',
};

function seconds(text: string): number {
  const value = Number(text);
  if (Number.isNaN(value) || value < 0) throw new CurlUsageError(`expected a proper numerical parameter`);
  return value * 1000;
}

function encodeData(text: string): string {
  const equals = text.indexOf('=');
  return equals < 0
    ? encodeURIComponent(text)
    : `${equals > 0 ? text.slice(0, equals + 1) : ''}${encodeURIComponent(text.slice(equals + 1))}`;
}

/** Throws CurlUsageError in curl 8's words. */
export function parseCurlOptions(args: readonly string[]): CurlOptions {
  const options: CurlOptions = {
    urls: [],
    silent: false,
    showError: false,
    output: undefined,
    remoteName: false,
    writeOut: undefined,
    verbose: false,
    include: false,
    head: false,
    method: undefined,
    headers: [],
    data: [],
    get: false,
    maxTime: undefined,
    connectTimeout: undefined,
    insecure: false,
    follow: false,
    maxRedirects: 50,
    fail: false,
    failWithBody: false,
    user: undefined,
    userAgent: undefined,
    resolve: [],
    retry: 0,
    retryDelay: 1000,
    caFile: undefined,
    version: false,
    help: false,
  };
  for (let i = 0; i < args.length; i += 1) {
    const arg = args[i] ?? '';
    if (!arg.startsWith('-') || arg === '-') {
      options.urls.push(arg);
      continue;
    }
    const long = arg.startsWith('--') ? arg.slice(2) : undefined;
    const letters = long === undefined ? [...arg.slice(1)] : [''];
    for (let j = 0; j < letters.length; j += 1) {
      const name = long ?? SHORT[letters[j] ?? ''];
      const shown = long === undefined ? `-${letters[j]}` : `--${long}`;
      const flag = name === undefined ? undefined : FLAGS[name];
      const setter = name === undefined ? undefined : VALUES[name];
      if (flag) flag(options, '');
      else if (setter) {
        const glued = long === undefined ? letters.slice(j + 1).join('') : '';
        const value = glued !== '' ? glued : args[++i];
        if (value === undefined) throw new CurlUsageError(`option ${shown}: requires parameter`);
        try {
          setter(options, value);
        } catch (error) {
          if (error instanceof CurlUsageError) throw new CurlUsageError(`option ${shown}: ${error.message}`);
          throw error;
        }
        break;
      } else if (long?.startsWith('no-') && FLAGS[long.slice(3)]) continue;
      else throw new CurlUsageError(`option ${shown}: is unknown`);
    }
  }
  return options;
}
