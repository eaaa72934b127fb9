import {
  type ClusterRole,
  deepEqual,
  dnsSubdomainErrors,
  type FieldError,
  type PolicyRule,
  pathSegmentErrors,
  type RoleBinding,
  type RoleRef,
  type Subject,
} from '#server/kube';
import { as, type Strategy } from '../kind.ts';
import { eachInvalid, invalidValue, notSupported, required } from './field-errors.ts';

const GROUP = 'rbac.authorization.k8s.io';

function ruleErrors(rule: PolicyRule, namespaced: boolean, field: string): FieldError[] {
  const errors: FieldError[] = [];
  if (!rule.verbs?.length) errors.push(required(`${field}.verbs`, 'verbs must contain at least one value'));
  const urls = rule.nonResourceURLs ?? [];
  if (urls.length > 0) {
    const at = `${field}.nonResourceURLs`;
    if (namespaced) errors.push(invalidValue(at, urls, 'namespaced rules cannot apply to non-resource URLs'));
    if (rule.apiGroups?.length || rule.resources?.length || rule.resourceNames?.length) {
      errors.push(
        invalidValue(at, urls, 'rules cannot apply to both regular resources and non-resource URLs'),
      );
    }
    return errors;
  }
  if (!rule.apiGroups?.length) {
    errors.push(required(`${field}.apiGroups`, 'resource rules must supply at least one api group'));
  }
  if (!rule.resources?.length) {
    errors.push(required(`${field}.resources`, 'resource rules must supply at least one resource'));
  }
  return errors;
}

function rolesErrors(role: ClusterRole, namespaced: boolean): FieldError[] {
  return (role.rules ?? []).flatMap((rule, index) => ruleErrors(rule, namespaced, `rules[${index}]`));
}

/** Roles and ClusterRoles. Models kubernetes/pkg/apis/rbac/validation. */
export function roleStrategy(namespaced: boolean): Strategy {
  return {
    nameRule: 'path-segment',
    allowCreateOnUpdate: true,
    allowUnconditionalUpdate: true,
    validate: (object) => rolesErrors(as<ClusterRole>(object), namespaced),
    validateUpdate: (object) => rolesErrors(as<ClusterRole>(object), namespaced),
  };
}

function subjectErrors(subject: Subject, namespaced: boolean, field: string): FieldError[] {
  const errors: FieldError[] = [];
  if (!subject.name) errors.push(required(`${field}.name`));
  switch (subject.kind) {
    case 'ServiceAccount':
      if (subject.name)
        errors.push(...eachInvalid(`${field}.name`, subject.name, dnsSubdomainErrors(subject.name)));
      if (subject.apiGroup) errors.push(notSupported(`${field}.apiGroup`, subject.apiGroup, ['']));
      if (!namespaced && !subject.namespace) errors.push(required(`${field}.namespace`));
      break;
    case 'User':
    case 'Group':
      if (!subject.name) {
        errors.push(invalidValue(`${field}.name`, '', `${subject.kind.toLowerCase()} name cannot be empty`));
      }
      if (subject.apiGroup !== GROUP)
        errors.push(notSupported(`${field}.apiGroup`, subject.apiGroup ?? '', [GROUP]));
      break;
    default:
      errors.push(notSupported(`${field}.kind`, subject.kind, ['ServiceAccount', 'User', 'Group']));
  }
  return errors;
}

function bindingErrors(binding: RoleBinding, namespaced: boolean): FieldError[] {
  const errors: FieldError[] = [];
  const { apiGroup, kind, name } = binding.roleRef;
  if (apiGroup !== GROUP) errors.push(notSupported('roleRef.apiGroup', apiGroup, [GROUP]));
  const kinds = namespaced ? ['Role', 'ClusterRole'] : ['ClusterRole'];
  if (!kinds.includes(kind)) errors.push(notSupported('roleRef.kind', kind, kinds));
  if (!name) errors.push(required('roleRef.name'));
  else errors.push(...eachInvalid('roleRef.name', name, pathSegmentErrors(name)));
  for (const [index, subject] of (binding.subjects ?? []).entries()) {
    errors.push(...subjectErrors(subject, namespaced, `subjects[${index}]`));
  }
  return errors;
}

/** Upstream shows its internal type. */
function shown(reference: RoleRef): unknown {
  return { APIGroup: reference.apiGroup, Kind: reference.kind, Name: reference.name };
}

/** RoleBindings and ClusterRoleBindings. Models kubernetes/pkg/apis/rbac (defaults and validation). */
export function bindingStrategy(namespaced: boolean): Strategy {
  return {
    nameRule: 'path-segment',
    allowCreateOnUpdate: true,
    allowUnconditionalUpdate: true,
    defaults(object) {
      const binding = as<RoleBinding>(object);
      binding.roleRef.apiGroup ||= GROUP;
      for (const subject of binding.subjects ?? []) {
        if ((subject.kind === 'User' || subject.kind === 'Group') && !subject.apiGroup)
          subject.apiGroup = GROUP;
      }
    },
    validate: (object) => bindingErrors(as<RoleBinding>(object), namespaced),
    validateUpdate(object, old) {
      const binding = as<RoleBinding>(object);
      const errors = bindingErrors(binding, namespaced);
      if (!deepEqual(binding.roleRef, as<RoleBinding>(old).roleRef)) {
        errors.push(invalidValue('roleRef', shown(binding.roleRef), 'cannot change roleRef'));
      }
      return errors;
    },
  };
}
