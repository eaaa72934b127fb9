import {
  type Affinity,
  type FieldError,
  type LabelSelector,
  labelValueErrors,
  type NodeSelectorTerm,
  type PodAffinityTerm,
  qualifiedNameErrors,
} from '#server/kube';
import { eachInvalid, forbiddenField, invalidValue, required } from './field-errors.ts';

interface Requirement {
  key: string;
  operator: string;
  values?: string[];
}

const NODE_OPERATORS = ['In', 'NotIn', 'Exists', 'DoesNotExist', 'Gt', 'Lt'];

/** Models metav1validation.ValidateLabelSelector. */
export function labelSelectorErrors(selector: LabelSelector | undefined, field: string): FieldError[] {
  if (!selector) return [];
  const errors: FieldError[] = [];
  for (const [key, value] of Object.entries(selector.matchLabels ?? {})) {
    errors.push(...eachInvalid(`${field}.matchLabels`, key, qualifiedNameErrors(key)));
    errors.push(...eachInvalid(`${field}.matchLabels`, value, labelValueErrors(value)));
  }
  for (const [index, requirement] of (selector.matchExpressions ?? []).entries()) {
    const at = `${field}.matchExpressions[${index}]`;
    errors.push(...valueCountErrors(requirement, at));
    errors.push(...eachInvalid(`${at}.key`, requirement.key, qualifiedNameErrors(requirement.key)));
    for (const [position, value] of (requirement.values ?? []).entries()) {
      errors.push(...eachInvalid(`${at}.values[${position}]`, value, labelValueErrors(value)));
    }
  }
  return errors;
}

function valueCountErrors(requirement: Requirement, field: string): FieldError[] {
  const values = requirement.values?.length ?? 0;
  switch (requirement.operator) {
    case 'In':
    case 'NotIn':
      return values > 0
        ? []
        : [required(`${field}.values`, "must be specified when `operator` is 'In' or 'NotIn'")];
    case 'Exists':
    case 'DoesNotExist':
      if (values === 0) return [];
      return [
        forbiddenField(
          `${field}.values`,
          "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        ),
      ];
    default:
      return [invalidValue(`${field}.operator`, requirement.operator, 'not a valid selector operator')];
  }
}

function nodeTermErrors(term: NodeSelectorTerm, field: string): FieldError[] {
  return (term.matchExpressions ?? []).flatMap((requirement, index) => {
    const at = `${field}.matchExpressions[${index}]`;
    if (requirement.operator === 'Gt' || requirement.operator === 'Lt') {
      if (requirement.values?.length === 1) return [];
      return [required(`${at}.values`, "must be specified single value when `operator` is 'Lt' or 'Gt'")];
    }
    if (!NODE_OPERATORS.includes(requirement.operator)) {
      return [invalidValue(`${at}.operator`, requirement.operator, 'not a valid selector operator')];
    }
    return [
      ...valueCountErrors(requirement, at),
      ...eachInvalid(`${at}.key`, requirement.key, qualifiedNameErrors(requirement.key)),
    ];
  });
}

function podTermErrors(term: PodAffinityTerm, field: string): FieldError[] {
  const errors = labelSelectorErrors(term.labelSelector, `${field}.labelSelector`);
  if (!term.topologyKey) errors.push(required(`${field}.topologyKey`, 'can not be empty'));
  else
    errors.push(
      ...eachInvalid(`${field}.topologyKey`, term.topologyKey, qualifiedNameErrors(term.topologyKey)),
    );
  return errors;
}

function weightErrors(weight: number, field: string): FieldError[] {
  return weight >= 1 && weight <= 100 ? [] : [invalidValue(field, weight, 'must be in the range 1-100')];
}

function podAffinityErrors(affinity: Affinity['podAffinity'], field: string): FieldError[] {
  const must = affinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
  const should = affinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
  return [
    ...must.flatMap((term, i) =>
      podTermErrors(term, `${field}.requiredDuringSchedulingIgnoredDuringExecution[${i}]`),
    ),
    ...should.flatMap((one, i) => {
      const at = `${field}.preferredDuringSchedulingIgnoredDuringExecution[${i}]`;
      return [
        ...weightErrors(one.weight, `${at}.weight`),
        ...podTermErrors(one.podAffinityTerm, `${at}.podAffinityTerm`),
      ];
    }),
  ];
}

/** Models validateAffinity of kubernetes/pkg/apis/core/validation. */
export function affinityErrors(affinity: Affinity | undefined, field: string): FieldError[] {
  if (!affinity) return [];
  const errors: FieldError[] = [];
  const node = affinity.nodeAffinity;
  const at = `${field}.nodeAffinity`;
  const must = node?.requiredDuringSchedulingIgnoredDuringExecution;
  if (must) {
    const terms = `${at}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms`;
    if (!must.nodeSelectorTerms?.length)
      errors.push(required(terms, 'must have at least one node selector term'));
    else errors.push(...must.nodeSelectorTerms.flatMap((term, i) => nodeTermErrors(term, `${terms}[${i}]`)));
  }
  for (const [i, one] of (node?.preferredDuringSchedulingIgnoredDuringExecution ?? []).entries()) {
    const preferred = `${at}.preferredDuringSchedulingIgnoredDuringExecution[${i}]`;
    errors.push(
      ...weightErrors(one.weight, `${preferred}.weight`),
      ...nodeTermErrors(one.preference, `${preferred}.preference`),
    );
  }
  errors.push(...podAffinityErrors(affinity.podAffinity, `${field}.podAffinity`));
  errors.push(...podAffinityErrors(affinity.podAntiAffinity, `${field}.podAntiAffinity`));
  return errors;
}
