import type { EventRecorder } from '#server/client';
import type { Klog } from '../klog.ts';

/** A recorder whose events are also lines of the log, as client-go's StartStructuredLogging writes them. */
export function loggedRecorder(recorder: EventRecorder, log: Klog): EventRecorder {
  let stopped = false;
  return {
    event(involved, type, reason, message, options = {}) {
      if (stopped) return;
      const { namespace, name } = involved.metadata;
      log.infoS('event.go:389', 'Event occurred', {
        object: namespace ? `${namespace}/${name}` : name,
        fieldPath: options.fieldPath ?? '',
        kind: involved.kind,
        apiVersion: involved.apiVersion,
        type,
        reason,
        message,
      });
      recorder.event(involved, type, reason, message, options);
    },
    flush: () => recorder.flush(),
    stop() {
      stopped = true;
      recorder.stop();
    },
  };
}
