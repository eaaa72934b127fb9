import { parse } from 'yaml';
import { z } from 'zod';
import { errorMessage } from '#server/base';
import type { FileSystem } from '#server/node';

/** What the guest's cloud-init reads: the parts of a cloud-config that Cluster API's bootstrap provider writes. */
export interface CloudConfig {
  files: { path: string; content: Uint8Array; mode: number; append: boolean }[];
  commands: string[];
}

/** The user data is no cloud-config the guest understands; the guest boots without it. */
export class CloudConfigError extends Error {
  override readonly name = 'CloudConfigError';
}

const schema = z.object({
  write_files: z
    .array(
      z.object({
        path: z.string().startsWith('/'),
        content: z.string().default(''),
        permissions: z.union([z.string(), z.number()]).optional(),
        encoding: z.string().optional(),
        append: z.boolean().optional(),
      }),
    )
    .default([]),
  runcmd: z.array(z.union([z.string(), z.array(z.string())])).default([]),
});

/** A cloud-config is at most this long: the size of a Secret. */
const MAX_USER_DATA = 1024 * 1024;

/** Parses `#cloud-config` user data. Throws CloudConfigError. Models cloud-init's cc_write_files and cc_runcmd. */
export function parseCloudConfig(userData: string): CloudConfig {
  if (userData.length > MAX_USER_DATA) throw new CloudConfigError('user data is longer than a Secret can be');
  if (!/^(## template: jinja\n)?#cloud-config\b/.test(userData))
    throw new CloudConfigError('user data does not begin with #cloud-config');
  let document: unknown;
  try {
    document = parse(userData, { maxAliasCount: 0 });
  } catch (error) {
    throw new CloudConfigError(`user data is no YAML: ${errorMessage(error)}`);
  }
  const parsed = schema.safeParse(document ?? {});
  if (!parsed.success) throw new CloudConfigError(z.prettifyError(parsed.error));
  return {
    files: parsed.data.write_files.map((file) => ({
      path: file.path,
      content: decode(file.content, file.encoding),
      mode: file.permissions === undefined ? 0o644 : Number.parseInt(String(file.permissions), 8),
      append: file.append ?? false,
    })),
    commands: parsed.data.runcmd.map((command) =>
      typeof command === 'string' ? command : command.map(quote).join(' '),
    ),
  };
}

function decode(content: string, encoding: string | undefined): Uint8Array {
  if (encoding === undefined || encoding === '' || encoding === 'text/plain') return Buffer.from(content);
  if (encoding === 'b64' || encoding === 'base64') return Buffer.from(content, 'base64');
  throw new CloudConfigError(
    `write_files: encoding ${JSON.stringify(encoding)} is not understood by this guest`,
  );
}

function quote(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}

/** Writes the files of a cloud-config, parents included. */
export function writeFiles(files: FileSystem, config: CloudConfig): void {
  for (const file of config.files) {
    const parent = file.path.slice(0, file.path.lastIndexOf('/'));
    if (parent) files.mkdir(parent, { recursive: true });
    const before = file.append && files.exists(file.path) ? files.readFile(file.path) : new Uint8Array();
    files.writeFile(file.path, Buffer.concat([before, file.content]), { mode: file.mode });
  }
}
