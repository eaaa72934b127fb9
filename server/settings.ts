import { accessSync, constants, existsSync, mkdirSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { z } from 'zod';
import { errorMessage, OperationalError } from '#server/base';

/** What the environment says, checked. Names are the product's outside contract. */
export interface Settings {
  host: string;
  port: number;
  apiPort: number;
  /** API_PORT was named: another port is then no answer. */
  apiPortIsFixed: boolean;
  dataDir: string;
  mode: 'solo';
  /** Base URL under which clients elsewhere reach the clusters, without trailing slash. */
  publicApiUrl: string | undefined;
  cloudSpeed: number;
  storeSync: 'normal' | 'full';
  metricsToken: string | undefined;
  logLevel: string;
}

const LOOPBACK = new Set(['127.0.0.1', '::1', 'localhost']);

const port = z.coerce.number().int().min(0).max(65535);
const schema = z.object({
  HOST: z.string().default('127.0.0.1'),
  PORT: port.default(3000),
  API_PORT: port.optional(),
  DATA_DIR: z.string().default('./data'),
  MODE: z.string().default('solo'),
  PUBLIC_API_URL: z.url({ protocol: /^https$/, error: 'must be an https URL' }).optional(),
  CLOUD_SPEED: z.coerce.number().min(0).max(100).default(1),
  STORE_SYNC: z.enum(['normal', 'full']).default('normal'),
  METRICS_TOKEN: z.string().min(1).optional(),
  MANAGEMENT_KUBECONFIG: z.string().optional(),
  DATABASE_URL: z.string().optional(),
  LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('warn'),
});

/** Reads the settings. Throws OperationalError naming the setting, what is wrong with it and what to write instead. */
export function readSettings(environment: Readonly<Record<string, string | undefined>>): Settings {
  const given = Object.fromEntries(
    Object.entries(environment).filter(([, value]) => value !== undefined && value !== ''),
  );
  const parsed = schema.safeParse(given);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    const name = String(issue?.path[0] ?? 'a setting');
    throw new OperationalError(`${name}=${String(given[name])} is not usable: ${issue?.message ?? ''}`, {
      remedy: `change ${name}, or leave it out for its default`,
    });
  }
  const env = parsed.data;
  if (env.MODE !== 'solo') {
    throw new OperationalError(`MODE=${env.MODE} is not offered by this version`, {
      remedy: 'set MODE=solo, or leave it out',
    });
  }
  for (const name of ['MANAGEMENT_KUBECONFIG', 'DATABASE_URL'] as const) {
    if (env[name] === undefined) continue;
    throw new OperationalError(
      `${name} is not offered by this version, which embeds its management cluster`,
      { remedy: `leave ${name} out` },
    );
  }
  if (!LOOPBACK.has(env.HOST)) {
    throw new OperationalError(
      `HOST=${env.HOST} is refused in MODE=solo, which has one local user and no accounts`,
      {
        remedy: 'leave HOST out (127.0.0.1)',
      },
    );
  }
  return {
    host: env.HOST,
    port: env.PORT,
    apiPort: env.API_PORT ?? 6443,
    apiPortIsFixed: env.API_PORT !== undefined,
    dataDir: resolve(env.DATA_DIR),
    mode: 'solo',
    publicApiUrl: env.PUBLIC_API_URL?.replace(/\/+$/, ''),
    cloudSpeed: env.CLOUD_SPEED,
    storeSync: env.STORE_SYNC,
    metricsToken: env.METRICS_TOKEN,
    logLevel: env.LOG_LEVEL,
  };
}

/**
 * Makes the folder and what is above it, one by one: Node's own recursive mkdir never returns where a file system answers
 * ENOENT below an existing folder (/proc).
 */
function makeFolder(folder: string): void {
  if (existsSync(folder)) return;
  const parent = dirname(folder);
  if (parent !== folder) makeFolder(parent);
  mkdirSync(folder, { mode: 0o700 });
}

/** Makes DATA_DIR and checks that it can be written. Throws OperationalError. */
export function prepareDataDir(folder: string): void {
  try {
    makeFolder(folder);
    accessSync(folder, constants.W_OK | constants.X_OK);
  } catch (cause) {
    throw new OperationalError(`DATA_DIR ${folder} cannot be written: ${errorMessage(cause)}`, {
      cause,
      remedy: 'make it writable for this user, or set DATA_DIR to another folder',
    });
  }
}
