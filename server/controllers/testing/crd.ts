import type { Draft } from '#server/client';
import { type CustomResourceDefinition, defineResource, type KubeObject } from '#server/kube';

export const widgets = defineResource<KubeObject>({
  group: 'lab.example',
  version: 'v1',
  kind: 'Widget',
  plural: 'widgets',
  namespaced: true,
});

/** A namespaced kind `widgets.lab.example`. */
export function widgetDefinition(): Draft<CustomResourceDefinition> {
  return {
    metadata: { name: 'widgets.lab.example' },
    spec: {
      group: 'lab.example',
      scope: 'Namespaced',
      names: { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList' },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
        },
      ],
    },
  };
}
