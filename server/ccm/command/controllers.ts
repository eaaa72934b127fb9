import type { CloudController, CloudControllerContext } from '../controller.ts';
import { startCloudNodeController } from '../node-controller/node-controller.ts';
import type { CommandOptions } from './options.ts';

export interface ControllerRow {
  /** For `--controllers`, the log and /healthz. */
  readonly name: string;
  /** The last part of its client's User-Agent. */
  readonly clientName: string;
  /**
   * Starts it; undefined when the cloud lacks what it needs. A row without it is a name that upstream's command knows
   * and this version cannot start.
   */
  readonly start?: (context: CloudControllerContext, options: CommandOptions) => CloudController | undefined;
}

/**
 * The controllers of the command, by name. A new one is a folder and a row.
 * Models DefaultInitFuncConstructors of k8s.io/cloud-provider/app, and what KubeVirt's main adds to it.
 */
export const CONTROLLERS: readonly ControllerRow[] = [
  {
    name: 'cloud-node-controller',
    clientName: 'node-controller',
    start: (context, options) =>
      startCloudNodeController(context, {
        statusUpdateFrequency: options.nodeStatusUpdateFrequency,
        concurrentSyncs: options.concurrentNodeSyncs,
        concurrentStatusUpdates: options.concurrentNodeStatusUpdates,
      }),
  },
  { name: 'cloud-node-lifecycle-controller', clientName: 'node-controller' },
  { name: 'kubevirt_eps_controller', clientName: '' },
  { name: 'node-route-controller', clientName: 'route-controller' },
  { name: 'service-lb-controller', clientName: 'service-controller' },
];

export const CONTROLLER_NAMES: readonly string[] = CONTROLLERS.map(({ name }) => name);
