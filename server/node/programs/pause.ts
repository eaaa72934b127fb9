import type { Program } from '../contract.ts';
import { untilStopped } from './http-server.ts';

/** registry.k8s.io/pause: does nothing until told to stop. Also stands for programs whose work the lab does elsewhere. */
export const pause: Program = {
  async run(process) {
    await untilStopped(process);
    return 0;
  },
};
