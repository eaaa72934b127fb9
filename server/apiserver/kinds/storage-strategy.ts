import {
  type CSIDriver,
  type CSINode,
  deepEqual,
  type FieldError,
  qualifiedNameErrors,
  type StorageClass,
} from '#server/kube';
import { as, type Strategy } from '../kind.ts';
import {
  duplicate,
  eachInvalid,
  forbiddenField,
  IMMUTABLE,
  invalidValue,
  notSupported,
  required,
} from './field-errors.ts';

const RECLAIM = ['Delete', 'Retain'];
const BINDING_MODES = ['Immediate', 'WaitForFirstConsumer'];
const GROUP_POLICIES = ['ReadWriteOnceWithFSType', 'File', 'None'];

/** Models kubernetes/pkg/apis/storage/v1/defaults.go and validation. */
export const csiDriverStrategy: Strategy = {
  allowUnconditionalUpdate: false,
  defaults(object) {
    const { spec } = as<CSIDriver>(object);
    spec.attachRequired ??= true;
    spec.podInfoOnMount ??= false;
    spec.storageCapacity ??= false;
    spec.fsGroupPolicy ??= 'ReadWriteOnceWithFSType';
    if (!spec.volumeLifecycleModes?.length) spec.volumeLifecycleModes = ['Persistent'];
    spec.requiresRepublish ??= false;
    spec.seLinuxMount ??= false;
  },
  validate(object) {
    const { spec } = as<CSIDriver>(object);
    if (!spec.fsGroupPolicy || GROUP_POLICIES.includes(spec.fsGroupPolicy)) return [];
    return [notSupported('spec.fsGroupPolicy', spec.fsGroupPolicy, GROUP_POLICIES)];
  },
  validateUpdate(object, old) {
    const [spec, before] = [as<CSIDriver>(object).spec, as<CSIDriver>(old).spec];
    return (['attachRequired', 'volumeLifecycleModes'] as const)
      .filter((member) => !deepEqual(spec[member], before[member]))
      .map((member) => invalidValue(`spec.${member}`, spec[member], IMMUTABLE));
  },
};

function driverErrors(node: CSINode): FieldError[] {
  const names = new Set<string>();
  return (node.spec.drivers ?? []).flatMap((driver, index) => {
    const at = `spec.drivers[${index}]`;
    const errors: FieldError[] = [];
    if (!driver.name) errors.push(required(`${at}.name`));
    if (!driver.nodeID) errors.push(required(`${at}.nodeID`));
    if (names.has(driver.name)) errors.push(duplicate(`${at}.name`, driver.name));
    names.add(driver.name);
    for (const key of driver.topologyKeys ?? [])
      errors.push(...eachInvalid(at, key, qualifiedNameErrors(key)));
    return errors;
  });
}

export const csiNodeStrategy: Strategy = {
  validate: (object) => driverErrors(as<CSINode>(object)),
  validateUpdate: (object) => driverErrors(as<CSINode>(object)),
};

function storageClassErrors(object: StorageClass): FieldError[] {
  const errors: FieldError[] = [];
  if (!object.provisioner) errors.push(required('provisioner'));
  else
    errors.push(
      ...eachInvalid(
        'provisioner',
        object.provisioner.toLowerCase(),
        qualifiedNameErrors(object.provisioner.toLowerCase()),
      ),
    );
  if (object.reclaimPolicy && !RECLAIM.includes(object.reclaimPolicy)) {
    errors.push(notSupported('reclaimPolicy', object.reclaimPolicy, RECLAIM));
  }
  if (!object.volumeBindingMode) errors.push(required('volumeBindingMode'));
  else if (!BINDING_MODES.includes(object.volumeBindingMode)) {
    errors.push(notSupported('volumeBindingMode', object.volumeBindingMode, BINDING_MODES));
  }
  return errors;
}

export const storageClassStrategy: Strategy = {
  allowUnconditionalUpdate: true,
  defaults(object) {
    const storageClass = as<StorageClass>(object);
    storageClass.reclaimPolicy ??= 'Delete';
    storageClass.volumeBindingMode ??= 'Immediate';
  },
  validate: (object) => storageClassErrors(as<StorageClass>(object)),
  validateUpdate(object, old) {
    const [next, before] = [as<StorageClass>(object), as<StorageClass>(old)];
    const errors = storageClassErrors(next);
    for (const member of ['parameters', 'provisioner', 'reclaimPolicy'] as const) {
      if (!deepEqual(next[member], before[member]))
        errors.push(forbiddenField(member, `updates to ${member} are forbidden.`));
    }
    if (next.volumeBindingMode !== before.volumeBindingMode) {
      errors.push(invalidValue('volumeBindingMode', next.volumeBindingMode, IMMUTABLE));
    }
    return errors;
  },
};
