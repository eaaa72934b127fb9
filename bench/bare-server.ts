// The floor of the creates bench: HTTPS, JSON in and out, one SQLite commit a request, nothing else.
import { createServer } from 'node:https';
import { openSqlite } from '#server/db';

const database = openSqlite(process.argv[2] ?? ':memory:', { sync: 'normal' });
database.exec('CREATE TABLE objects (name TEXT PRIMARY KEY, value TEXT)');
const insert = database.prepare('INSERT INTO objects VALUES (?, ?)');

process.once('message', (serving: { certPem: string; keyPem: string }) => {
  let revision = 0;
  const server = createServer({ cert: serving.certPem, key: serving.keyPem }, (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const object = JSON.parse(Buffer.concat(chunks).toString()) as {
        metadata: { name: string; resourceVersion?: string };
      };
      object.metadata.resourceVersion = String(++revision);
      const text = JSON.stringify(object);
      insert.run(object.metadata.name, text);
      response.writeHead(201, {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(text),
      });
      response.end(text);
    });
  });
  server.listen(0, '127.0.0.1', () => process.send?.((server.address() as { port: number }).port));
});
