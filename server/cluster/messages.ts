import { z } from 'zod';

/** What the web process tells the cluster process when it starts it (JSON in argv[2]). */
export const startOptions = z.object({
  dataDir: z.string(),
  host: z.string(),
  port: z.number(),
  portIsFixed: z.boolean(),
  names: z.array(z.string()),
  cloudSpeed: z.number(),
  storeSync: z.enum(['normal', 'full']),
  logLevel: z.string(),
});

export type StartOptions = z.infer<typeof startOptions>;

/** What the cluster process tells the web process, over IPC. */
export const report = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('ready'),
    url: z.string(),
    port: z.number(),
    adminKubeconfig: z.string(),
    pid: z.number(),
  }),
  z.object({ type: z.literal('failed'), message: z.string(), remedy: z.string().optional() }),
]);

export type Report = z.infer<typeof report>;
