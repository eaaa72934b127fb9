import type { Program } from '../contract.ts';
import { serveHttp, untilStopped } from './http-server.ts';

/** hashicorp/http-echo: answers every request with `-text`, on `-listen` (`:5678`). */
export const httpEcho: Program = {
  async run(process) {
    const option = (name: string): string | undefined => {
      for (const [index, arg] of process.argv.entries()) {
        const match = new RegExp(`^--?${name}(?:=(.*))?$`, 's').exec(arg);
        if (match) return match[1] ?? process.argv[index + 1];
      }
      return undefined;
    };
    const text = option('text') ?? process.env.ECHO_TEXT;
    if (text === undefined) {
      process.stderr.write('Missing -text option!\n');
      return 127;
    }
    const listen = option('listen') ?? ':5678';
    const status = Number(option('status-code') ?? 200);
    const port = Number(listen.slice(listen.lastIndexOf(':') + 1));
    const listener = serveHttp(process.network, port, (request, response) => {
      const body = `${text}\n`;
      response.writeHead(status, {
        'X-App-Name': 'http-echo',
        'X-App-Version': '1.0.0',
        'Content-Type': 'text/plain; charset=utf-8',
        'Content-Length': Buffer.byteLength(body),
      });
      response.end(request.method === 'HEAD' ? undefined : body);
      process.stdout.write(
        `${new Date(process.clock.now()).toISOString()} ${request.headers.host ?? ''} ${request.method} "${request.url}" HTTP/${request.httpVersion} ${status} ${body.length} "${request.headers['user-agent'] ?? ''}"\n`,
      );
    });
    process.stdout.write(`[INFO] server is listening on ${listen}\n`);
    await untilStopped(process);
    listener.close();
    return 0;
  },
};
