import { InternalError } from '#server/base';
import type { Kubelet, KubeletOptions } from './contract.ts';

export function createKubelet(options: KubeletOptions): Kubelet {
  throw new InternalError(`kubelet of ${options.nodeName}: being written`);
}
