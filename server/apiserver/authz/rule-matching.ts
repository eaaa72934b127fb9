import type { PolicyRule } from '#server/kube';
import type { AuthorizationAttributes } from '../kind.ts';

/** Does one rule allow this request? Models kubernetes/plugin/pkg/auth/authorizer/rbac (RuleAllows). */
export function ruleAllows(rule: PolicyRule, attributes: AuthorizationAttributes): boolean {
  if (!hasOrStar(rule.verbs, attributes.verb)) return false;
  const resource = attributes.resource;
  if (!resource) return nonResourceUrlMatches(rule.nonResourceURLs, attributes.path ?? '');
  return (
    hasOrStar(rule.apiGroups, resource.group) &&
    resourceMatches(rule.resources, resource.plural, resource.subresource ?? '') &&
    resourceNameMatches(rule.resourceNames, resource.name ?? '')
  );
}

function hasOrStar(list: readonly string[] | undefined, value: string): boolean {
  return list !== undefined && (list.includes('*') || list.includes(value));
}

/** A star is everything, `pods/log` exactly that, a star before a slash that subresource of anything; `pods/*` is no pattern. */
function resourceMatches(list: readonly string[] | undefined, plural: string, subresource: string): boolean {
  if (!list) return false;
  const combined = subresource ? `${plural}/${subresource}` : plural;
  return list.some(
    (entry) => entry === '*' || entry === combined || (subresource !== '' && entry === `*/${subresource}`),
  );
}

function resourceNameMatches(names: readonly string[] | undefined, name: string): boolean {
  return !names || names.length === 0 || names.includes(name);
}

function nonResourceUrlMatches(urls: readonly string[] | undefined, path: string): boolean {
  return urls?.some((url) => urlCovers(url, path)) ?? false;
}

/** `/apis/*` covers everything that starts with `/apis/`. */
function urlCovers(url: string, path: string): boolean {
  return url === path || (url.endsWith('*') && path.startsWith(url.replace(/\*+$/, '')));
}

/**
 * The atoms of `wanted` (one verb, one resource or URL, one name each) that no rule of `held` covers; empty when
 * `held` covers all. Models k8s.io/component-helpers/auth/rbac/validation (Covers).
 */
export function missingRules(held: readonly PolicyRule[], wanted: readonly PolicyRule[]): PolicyRule[] {
  return wanted.flatMap(atomsOf).filter((atom) => !held.some((rule) => covers(rule, atom)));
}

function atomsOf(rule: PolicyRule): PolicyRule[] {
  const atoms: PolicyRule[] = [];
  for (const group of rule.apiGroups ?? []) {
    for (const resource of rule.resources ?? []) {
      for (const verb of rule.verbs) {
        const atom = { apiGroups: [group], resources: [resource], verbs: [verb] };
        if (rule.resourceNames?.length)
          atoms.push(...rule.resourceNames.map((name) => ({ ...atom, resourceNames: [name] })));
        else atoms.push(atom);
      }
    }
  }
  for (const url of rule.nonResourceURLs ?? [])
    for (const verb of rule.verbs) atoms.push({ nonResourceURLs: [url], verbs: [verb] });
  return atoms;
}

function covers(rule: PolicyRule, atom: PolicyRule): boolean {
  const each = (atoms: readonly string[] | undefined, holds: (value: string) => boolean): boolean =>
    atoms?.every(holds) ?? true;
  return (
    each(atom.verbs, (verb) => hasOrStar(rule.verbs, verb)) &&
    each(atom.apiGroups, (group) => hasOrStar(rule.apiGroups, group)) &&
    each(atom.resources, (resource) => coversResource(rule.resources, resource)) &&
    each(atom.nonResourceURLs, (url) => nonResourceUrlMatches(rule.nonResourceURLs, url)) &&
    (atom.resourceNames?.length
      ? atom.resourceNames.every((name) => resourceNameMatches(rule.resourceNames, name))
      : !rule.resourceNames?.length)
  );
}

function coversResource(list: readonly string[] | undefined, resource: string): boolean {
  const slash = resource.indexOf('/');
  return slash < 0
    ? resourceMatches(list, resource, '')
    : resourceMatches(list, resource.slice(0, slash), resource.slice(slash + 1));
}
