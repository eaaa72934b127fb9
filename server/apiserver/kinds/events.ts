import type { Event, EventSource } from '#server/kube';
import { as, type KindDefinition } from '../kind.ts';
import { column, nameColumn, since, wideColumn } from './cells.ts';
import { defineKind } from './define.ts';
import { eventStrategy } from './event-strategy.ts';

function firstSeen(event: Event): string | null | undefined {
  return event.firstTimestamp ?? event.eventTime;
}

function lastSeen(event: Event): string | null | undefined {
  return event.series ? event.series.lastObservedTime : (event.lastTimestamp ?? firstSeen(event));
}

function about(event: Event): string {
  const { kind, name } = event.involvedObject;
  return name ? `${(kind ?? '').toLowerCase()}/${name}` : (kind ?? '').toLowerCase();
}

function sourceText(event: Event): string {
  const source: EventSource = event.source ?? {};
  const component = source.component || event.reportingComponent || '';
  const host = source.component ? source.host : source.host || event.reportingInstance;
  return host ? `${component}, ${host}` : component;
}

/** Models printEvent of kubernetes/pkg/printers/internalversion and the field selectors of pkg/registry/core/event. */
export const eventKinds: readonly KindDefinition[] = [
  defineKind({
    group: '',
    kind: 'Event',
    plural: 'events',
    namespaced: true,
    types: 'core/v1',
    shortNames: ['ev'],
    strategy: eventStrategy,
    columns: [
      column('Last Seen', 'When it happened last.', (object, now) => since(lastSeen(as<Event>(object)), now)),
      column('Type', 'Normal or Warning.', (object) => as<Event>(object).type ?? ''),
      column('Reason', 'Why, in one word for machines.', (object) => as<Event>(object).reason ?? ''),
      column('Object', 'What it is about.', (object) => about(as<Event>(object))),
      wideColumn(
        'Subobject',
        'The part of the object it is about.',
        (object) => as<Event>(object).involvedObject.fieldPath ?? '',
      ),
      wideColumn('Source', 'Who reported it.', (object) => sourceText(as<Event>(object))),
      column('Message', 'What happened, for people.', (object) => (as<Event>(object).message ?? '').trim()),
      wideColumn('First Seen', 'When it happened first.', (object, now) =>
        since(firstSeen(as<Event>(object)), now),
      ),
      wideColumn(
        'Count',
        'How often it happened.',
        (object) => as<Event>(object).series?.count ?? (as<Event>(object).count || 1),
      ),
      { ...nameColumn, priority: 1 },
    ],
    selectableFields: {
      'involvedObject.kind': (object) => as<Event>(object).involvedObject.kind ?? '',
      'involvedObject.namespace': (object) => as<Event>(object).involvedObject.namespace ?? '',
      'involvedObject.name': (object) => as<Event>(object).involvedObject.name ?? '',
      'involvedObject.uid': (object) => as<Event>(object).involvedObject.uid ?? '',
      'involvedObject.apiVersion': (object) => as<Event>(object).involvedObject.apiVersion ?? '',
      'involvedObject.resourceVersion': (object) => as<Event>(object).involvedObject.resourceVersion ?? '',
      'involvedObject.fieldPath': (object) => as<Event>(object).involvedObject.fieldPath ?? '',
      reason: (object) => as<Event>(object).reason ?? '',
      reportingComponent: (object) => as<Event>(object).reportingComponent ?? '',
      source: (object) => as<Event>(object).source?.component || as<Event>(object).reportingComponent || '',
      type: (object) => as<Event>(object).type ?? '',
    },
  }),
];
