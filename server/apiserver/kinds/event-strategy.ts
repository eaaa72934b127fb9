import type { Event, FieldError } from '#server/kube';
import { as, type Strategy } from '../kind.ts';
import { invalidValue } from './field-errors.ts';

/** Events about things without a namespace live in `default`; all others beside their object. */
function eventErrors(event: Event): FieldError[] {
  const about = event.involvedObject.namespace ?? '';
  const own = event.metadata.namespace ?? '';
  const fits = about === '' ? own === '' || own === 'default' : own === about;
  const withoutNamespaceElsewhere = about === '' && event.eventTime && own === 'kube-system';
  if (fits || withoutNamespaceElsewhere) return [];
  return [invalidValue('involvedObject.namespace', about, 'does not match event.namespace')];
}

/** Models kubernetes/pkg/registry/core/event and ValidateEventCreate of older clients' events. */
export const eventStrategy: Strategy = {
  allowCreateOnUpdate: true,
  allowUnconditionalUpdate: true,
  validate: (object) => eventErrors(as<Event>(object)),
  validateUpdate: (object) => eventErrors(as<Event>(object)),
};
