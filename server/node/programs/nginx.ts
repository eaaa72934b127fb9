import type http from 'node:http';
import { FileError, type FileSystem, type Process, type Program } from '../contract.ts';
import { normalisePath } from '../files/path.ts';
import { serveHttp, untilStopped } from './http-server.ts';

const ROOT = '/usr/share/nginx/html';
export const NGINX_VERSION = '1.29.4';
const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html',
  htm: 'text/html',
  css: 'text/css',
  js: 'application/javascript',
  json: 'application/json',
  txt: 'text/plain',
  xml: 'text/xml',
  svg: 'image/svg+xml',
  png: 'image/png',
  jpg: 'image/jpeg',
  gif: 'image/gif',
  ico: 'image/x-icon',
};
const TITLES: Readonly<Record<number, string>> = {
  301: 'Moved Permanently',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Not Allowed',
};

/** The files of the nginx image that lessons look at. */
export const nginxFiles: Readonly<Record<string, string>> = {
  [`${ROOT}/index.html`]: page(
    'Welcome to nginx!',
    '<p>If you see this page, nginx is successfully installed and working.\nFurther configuration is required for the web server, reverse proxy,\nAPI gateway, load balancer, content cache, or other features.</p>\n',
  ),
  [`${ROOT}/50x.html`]: page('Error', '<p>The page you are looking for is currently unavailable.</p>\n'),
  '/etc/nginx/conf.d/default.conf': `server {\n    listen       80;\n    server_name  localhost;\n\n    location / {\n        root   ${ROOT};\n        index  index.html index.htm;\n    }\n}\n`,
  '/etc/os-release':
    'PRETTY_NAME="Debian GNU/Linux 13 (trixie)"\nNAME="Debian GNU/Linux"\nVERSION_ID="13"\nID=debian\n',
};

function page(title: string, body: string): string {
  return `<!DOCTYPE html>\n<html>\n<head>\n<title>${title}</title>\n</head>\n<body>\n<h1>${title}</h1>\n${body}</body>\n</html>\n`;
}

interface Answer {
  status: number;
  headers: Record<string, string>;
  body: Uint8Array;
}

/**
 * nginx with its default configuration: files of /usr/share/nginx/html on the port of conf.d/default.conf (80), the
 * access log on standard output. `-v`, `-V` and `-t` answer and exit.
 */
export const nginx: Program = {
  async run(process) {
    const args = process.argv.slice(1);
    if (args.includes('-v') || args.includes('-V')) {
      process.stderr.write(`nginx version: nginx/${NGINX_VERSION}\n`);
      return 0;
    }
    if (args.includes('-t')) {
      process.stderr.write(
        'nginx: the configuration file /etc/nginx/nginx.conf syntax is ok\nnginx: configuration file /etc/nginx/nginx.conf test is successful\n',
      );
      return 0;
    }
    const port = listenPort(process.files);
    const handle = (request: http.IncomingMessage, response: http.ServerResponse): void => {
      const answer = respond(process.files, request);
      const { status } = answer;
      response.writeHead(status, {
        Server: `nginx/${NGINX_VERSION}`,
        Date: new Date(process.clock.now()).toUTCString(),
        ...answer.headers,
        'Content-Length': answer.body.length,
        Connection: 'keep-alive',
      });
      response.end(request.method === 'HEAD' ? undefined : answer.body);
      log(process, request, status, request.method === 'HEAD' ? 0 : answer.body.length);
    };
    const listener = serveHttp(process.network, port, handle);
    const notice = (text: string): void => {
      const time = new Date(process.clock.now())
        .toISOString()
        .slice(0, 19)
        .replace('T', ' ')
        .replaceAll('-', '/');
      process.stderr.write(`${time} [notice] 1#1: ${text}\n`);
    };
    notice('using the "epoll" event method');
    notice(`nginx/${NGINX_VERSION}`);
    notice('start worker processes');
    await untilStopped(process);
    listener.close();
    return 0;
  },
};

function listenPort(files: FileSystem): number {
  const path = '/etc/nginx/conf.d/default.conf';
  if (!files.exists(path)) return 80;
  const match = /^\s*listen\s+(?:\S+:)?(\d+)/m.exec(Buffer.from(files.readFile(path)).toString('utf8'));
  return match ? Number(match[1]) : 80;
}

function respond(files: FileSystem, request: http.IncomingMessage): Answer {
  const method = request.method ?? 'GET';
  if (method !== 'GET' && method !== 'HEAD') return plain(405);
  const path = decodePath(request.url ?? '/');
  if (path === undefined) return plain(403);
  const at = `${ROOT}${path === '/' ? '' : path}`;
  try {
    if (isDirectory(files, at)) {
      if (!(request.url ?? '').split('?')[0]?.endsWith('/')) {
        return {
          ...plain(301),
          headers: {
            'Content-Type': 'text/html',
            Location: `http://${request.headers.host ?? 'localhost'}${path}/`,
          },
        };
      }
      return files.exists(`${at}/index.html`) ? file(files, `${at}/index.html`) : plain(403);
    }
    return file(files, at);
  } catch (error) {
    if (error instanceof FileError) return plain(404);
    throw error;
  }
}

function decodePath(url: string): string | undefined {
  try {
    return normalisePath(decodeURIComponent(url.split('?')[0] ?? '/'));
  } catch (error) {
    if (error instanceof URIError || error instanceof FileError) return undefined;
    throw error;
  }
}

function isDirectory(files: FileSystem, path: string): boolean {
  try {
    files.readdir(path);
    return true;
  } catch (error) {
    if (error instanceof FileError && error.code === 'ENOTDIR') return false;
    throw error;
  }
}

function file(files: FileSystem, path: string): Answer {
  const body = files.readFile(path);
  const modified = files.stat(path).modified;
  const extension = path.slice(path.lastIndexOf('.') + 1);
  return {
    status: 200,
    headers: {
      'Content-Type': TYPES[extension] ?? 'application/octet-stream',
      'Last-Modified': new Date(modified).toUTCString(),
      ETag: `"${Math.floor(modified / 1000).toString(16)}-${body.length.toString(16)}"`,
      'Accept-Ranges': 'bytes',
    },
    body,
  };
}

function plain(status: number): Answer {
  const title = `${status} ${TITLES[status] ?? ''}`;
  return {
    status,
    headers: { 'Content-Type': 'text/html' },
    body: Buffer.from(
      `<html>\r\n<head><title>${title}</title></head>\r\n<body>\r\n<center><h1>${title}</h1></center>\r\n<hr><center>nginx/${NGINX_VERSION}</center>\r\n</body>\r\n</html>\r\n`,
    ),
  };
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

function log(process: Process, request: http.IncomingMessage, status: number, bytes: number): void {
  const now = new Date(process.clock.now());
  const time = `${String(now.getUTCDate()).padStart(2, '0')}/${MONTHS[now.getUTCMonth()]}/${now.getUTCFullYear()}:${now.toISOString().slice(11, 19)} +0000`;
  const socket = request.socket as { remoteAddress?: string };
  const header = (name: 'referer' | 'user-agent' | 'x-forwarded-for'): string => {
    const value = request.headers[name];
    return (Array.isArray(value) ? value[0] : value) ?? '-';
  };
  process.stdout.write(
    `${socket.remoteAddress ?? '-'} - - [${time}] "${request.method} ${request.url} HTTP/${request.httpVersion}" ${status} ${bytes} "${header('referer')}" "${header('user-agent')}" "${header('x-forwarded-for')}"\n`,
  );
}
