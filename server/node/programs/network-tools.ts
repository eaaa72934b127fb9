import http from 'node:http';
import { isIP } from 'node:net';
import { FileError, NetworkError, type Process, type Program } from '../contract.ts';
import { readText } from '../files/mounted-files.ts';
import { joinPath } from '../files/path.ts';
import { RECORD_TYPES, RESPONSE_CODES } from '../network/dns-message.ts';
import { askDns, candidateNames } from '../network/resolver.ts';

const MAX_BODY = 64 * 1024 * 1024;

/** What connect() fails with, as strerror words it. */
function errorText(error: NetworkError): string {
  const texts: Readonly<Record<NetworkError['code'], string>> = {
    ECONNREFUSED: 'Connection refused',
    EHOSTUNREACH: 'Host is unreachable',
    ENETUNREACH: 'Network unreachable',
    ETIMEDOUT: 'Operation timed out',
    ENOTFOUND: 'bad address',
    EAI_AGAIN: 'bad address',
    EADDRINUSE: 'Address in use',
  };
  return texts[error.code];
}

/** busybox wget: `-q -O -T -S --spider --header --post-data`. */
const wget: Program = {
  async run(process) {
    const options = {
      quiet: false,
      output: undefined as string | undefined,
      timeout: 900_000,
      spider: false,
      headers: {} as Record<string, string>,
      post: undefined as string | undefined,
      show: false,
    };
    let target: string | undefined;
    const args = process.argv.slice(1);
    for (let i = 0; i < args.length; i += 1) {
      const arg = args[i] ?? '';
      const long = /^--([\w-]+)(?:=(.*))?$/s.exec(arg);
      if (long) {
        if (long[1] === 'spider') options.spider = true;
        else if (long[1] === 'header') {
          const [name = '', ...value] = (long[2] ?? args[++i] ?? '').split(':');
          options.headers[name] = value.join(':').trim();
        } else if (long[1] === 'post-data') options.post = long[2] ?? args[++i] ?? '';
        else if (long[1] === 'timeout') options.timeout = Number(long[2] ?? args[++i]) * 1000;
        else if (long[1] === 'quiet') options.quiet = true;
        continue;
      }
      if (!arg.startsWith('-') || arg === '-') {
        target = arg;
        continue;
      }
      for (let j = 1; j < arg.length; j += 1) {
        const letter = arg[j];
        const value = (): string => {
          const glued = arg.slice(j + 1);
          j = arg.length;
          return glued !== '' ? glued : (args[++i] ?? '');
        };
        if (letter === 'q') options.quiet = true;
        else if (letter === 'S') options.show = true;
        else if (letter === 'O') options.output = value();
        else if (letter === 'T') options.timeout = Number(value()) * 1000;
        else if (letter === 't' || letter === 'Y' || letter === 'U' || letter === 'P') value();
      }
    }
    if (target === undefined) {
      process.stderr.write(
        'BusyBox v1.37.0 multi-call binary.\n\nUsage: wget [-cqS] [--spider] [-O FILE] [-T SEC] URL...\n',
      );
      return 1;
    }
    const url = new URL(/^https?:\/\//.test(target) ? target : `http://${target}`);
    const port = Number(url.port || 80);
    const over = new AbortController();
    const timer = process.clock.after(options.timeout, () => over.abort());
    const say = (text: string): void => void (options.quiet || process.stderr.write(text));
    try {
      const ip = isIP(url.hostname)
        ? url.hostname
        : ((await process.network.resolve(url.hostname, { signal: over.signal }))[0] ?? '');
      say(`Connecting to ${url.host} (${ip}:${port})\n`);
      const stream = await process.network.connect(ip, port, {
        signal: AbortSignal.any([over.signal, process.signal]),
      });
      const answer = await new Promise<http.IncomingMessage>((resolve, reject) => {
        const outgoing = http.request({
          createConnection: () => stream,
          method: options.post === undefined ? 'GET' : 'POST',
          path: `${url.pathname}${url.search}`,
          headers: { Host: url.host, 'User-Agent': 'Wget', Connection: 'close', ...options.headers },
        });
        outgoing.once('response', resolve);
        outgoing.once('error', reject);
        outgoing.end(options.post);
      });
      const status = answer.statusCode ?? 0;
      if (options.show)
        process.stderr.write(`  HTTP/${answer.httpVersion} ${status} ${answer.statusMessage}\n`);
      if (status >= 400) {
        process.stderr.write(
          `wget: server returned error: HTTP/${answer.httpVersion} ${status} ${answer.statusMessage}\n`,
        );
        stream.destroy();
        return 1;
      }
      if (options.spider) {
        say('remote file exists\n');
        stream.destroy();
        return 0;
      }
      return await save(
        process,
        answer,
        options.output ?? (url.pathname.split('/').at(-1) || 'index.html'),
        say,
      );
    } catch (error) {
      if (over.signal.aborted) process.stderr.write('wget: download timed out\n');
      else if (error instanceof NetworkError && (error.code === 'ENOTFOUND' || error.code === 'EAI_AGAIN'))
        process.stderr.write(`wget: bad address '${url.host}'\n`);
      else if (error instanceof NetworkError)
        process.stderr.write(`wget: can't connect to remote host (${url.hostname}): ${errorText(error)}\n`);
      else if (error instanceof FileError)
        process.stderr.write(`wget: can't open '${options.output ?? ''}': ${error.code}\n`);
      else process.stderr.write('wget: error getting response\n');
      return 1;
    } finally {
      timer.cancel();
    }
  },
};

async function save(
  process: Process,
  answer: http.IncomingMessage,
  output: string,
  say: (text: string) => void,
): Promise<number> {
  const toStdout = output === '-';
  if (!toStdout) say(`saving to '${output}'\n`);
  const parts: Buffer[] = [];
  let size = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_BODY) return 1;
    if (toStdout) process.stdout.write(chunk);
    else parts.push(chunk);
  }
  if (!toStdout && output !== '/dev/null')
    process.files.writeFile(joinPath(process.cwd, output), Buffer.concat(parts));
  say(
    `${(toStdout ? '-' : output).padEnd(20)} 100% |********************************| ${String(size).padStart(5)}  0:00:00 ETA\n`,
  );
  if (!toStdout) say(`'${output}' saved\n`);
  return 0;
}

function resolverOf(process: Process): { servers: string[]; search: string[]; ndots: number } {
  const lines = (readText(process.files, '/etc/resolv.conf') ?? '')
    .split('\n')
    .map((line) => line.trim().split(/\s+/));
  const ndots = lines.find((line) => line[0] === 'options')?.find((word) => word.startsWith('ndots:'));
  return {
    servers: lines.filter((line) => line[0] === 'nameserver').map((line) => line[1] ?? ''),
    search: lines.find((line) => line[0] === 'search')?.slice(1) ?? [],
    ndots: ndots ? Number(ndots.slice(6)) : 1,
  };
}

/** busybox nslookup: A and AAAA (or `-type=`), through resolv.conf's search list. */
const nslookup: Program = {
  async run(process) {
    const type = process.argv
      .map((arg) => /^-(?:q|query|type)=(\w+)$/i.exec(arg)?.[1]?.toUpperCase())
      .find((one) => one !== undefined);
    const [name, server] = process.argv.slice(1).filter((arg) => !arg.startsWith('-'));
    if (name === undefined) {
      process.stderr.write('Usage: nslookup [-type=QUERY_TYPE] HOST [DNS_SERVER]\n');
      return 1;
    }
    const config = resolverOf(process);
    const target = server ?? config.servers[0] ?? '127.0.0.1';
    process.stdout.write(`Server:\t\t${target}\nAddress:\t${target}:53\n\n`);
    const kinds = type ? [type] : ['A', 'AAAA'];
    const reverse = isIP(name) === 4;
    const asked = reverse ? `${name.split('.').reverse().join('.')}.in-addr.arpa` : name;
    const candidates =
      reverse || (name.includes('.') && name.split('.').length - 1 >= config.ndots)
        ? [asked]
        : candidateNames(name, config);
    let found = false;
    for (const candidate of candidates) {
      for (const kind of reverse ? ['PTR'] : kinds) {
        const number = RECORD_TYPES[kind as keyof typeof RECORD_TYPES] ?? RECORD_TYPES.A;
        try {
          const answer = await askDns(process.network, target, candidate, number, {
            id: 1,
            signal: process.signal,
          });
          if (answer.code !== RESPONSE_CODES.NOERROR) {
            if (candidates.length === 1 || candidate === candidates.at(-1))
              process.stdout.write(
                `** server can't find ${candidate}: ${answer.code === RESPONSE_CODES.NXDOMAIN ? 'NXDOMAIN' : 'SERVFAIL'}\n\n`,
              );
            continue;
          }
          for (const record of answer.answers) {
            found = true;
            process.stdout.write(
              record.type === RECORD_TYPES.A || record.type === RECORD_TYPES.AAAA
                ? `Name:\t${record.name}\nAddress: ${record.data}\n\n`
                : record.type === RECORD_TYPES.PTR
                  ? `${record.name}\tname = ${record.data}\n`
                  : `${record.name}\t${kind} ${record.data}\n`,
            );
          }
        } catch (error) {
          if (!(error instanceof NetworkError)) throw error;
          process.stdout.write(';; connection timed out; no servers could be reached\n\n');
          return 1;
        }
      }
      if (found) return 0;
    }
    return found ? 0 : 1;
  },
};

/** `nc [-z] [-v] [-w SEC] [-l] HOST PORT`. */
const nc: Program = {
  async run(process) {
    const flags = process.argv
      .slice(1)
      .filter((arg) => /^-[a-zA-Z]+$/.test(arg))
      .join('');
    const wait = process.argv.indexOf('-w');
    const port2 = process.argv.indexOf('-p');
    const rest = process.argv
      .slice(1)
      .filter(
        (arg, index) =>
          !arg.startsWith('-') &&
          index + 1 !== wait + 1 + (wait < 0 ? 99 : 0) &&
          index + 1 !== port2 + 1 + (port2 < 0 ? 99 : 0),
      );
    if (flags.includes('l')) return ncListen(process, Number(port2 >= 0 ? process.argv[port2 + 1] : rest[0]));
    const [host = '', portText = ''] = rest;
    const port = Number(portText);
    const over = new AbortController();
    const timer =
      wait >= 0 ? process.clock.after(Number(process.argv[wait + 1]) * 1000, () => over.abort()) : undefined;
    try {
      const ip = isIP(host) ? host : ((await process.network.resolve(host))[0] ?? host);
      const stream = await process.network.connect(ip, port, {
        signal: AbortSignal.any([over.signal, process.signal]),
      });
      if (flags.includes('v')) process.stderr.write(`${host} (${ip}:${port}) open\n`);
      if (flags.includes('z')) {
        stream.destroy();
        return 0;
      }
      process.stdin.pipe(stream);
      stream.pipe(process.stdout, { end: false });
      await new Promise<void>((resolve) => {
        stream.once('end', resolve);
        stream.once('close', resolve);
        process.signal.addEventListener('abort', () => resolve(), { once: true });
      });
      stream.destroy();
      return 0;
    } catch (error) {
      if (over.signal.aborted) process.stderr.write(`nc: ${host} (${host}:${port}): Operation timed out\n`);
      else if (error instanceof NetworkError)
        process.stderr.write(
          error.code === 'ENOTFOUND' || error.code === 'EAI_AGAIN'
            ? `nc: bad address '${host}'\n`
            : `nc: ${host} (${host}:${port}): ${errorText(error)}\n`,
        );
      else throw error;
      return 1;
    } finally {
      timer?.cancel();
    }
  },
};

async function ncListen(process: Process, port: number): Promise<number> {
  return new Promise((resolve) => {
    const listener = process.network.listen(port, ({ stream }) => {
      listener.close();
      stream.pipe(process.stdout, { end: false });
      process.stdin.pipe(stream);
      stream.once('close', () => resolve(0));
      stream.once('end', () => stream.destroy());
    });
    process.signal.addEventListener('abort', () => listener.close(), { once: true });
  });
}

/** `ip addr` and `ifconfig`: the pod's one interface. */
const ip: Program = {
  async run(process) {
    const address = process.network.ips[0] ?? '';
    if (process.argv.some((arg) => /^r(oute)?$/.test(arg)))
      process.stdout.write('default via 10.0.0.1 dev eth0\n');
    else
      process.stdout.write(
        `1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN qlen 1000\n    inet 127.0.0.1/8 scope host lo\n2: eth0@if7: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP\n    inet ${address}/32 scope global eth0\n`,
      );
    return 0;
  },
};

/** busybox's programs that need the network. */
export const networkTools: Readonly<Record<string, Program>> = { wget, nslookup, nc, ip };
