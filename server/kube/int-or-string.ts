import { badRequest } from './status-error.ts';

/**
 * The count an IntOrString means: a number is itself, `"25%"` is that share of `total`, rounded up or down. A string that
 * is no percentage throws StatusError 400 (validation keeps such a value out of stored objects).
 * Models GetScaledValueFromIntOrPercent of k8s.io/apimachinery/pkg/util/intstr.
 */
export function resolveIntOrPercent(value: number | string, total: number, roundUp: boolean): number {
  if (typeof value === 'number') return value;
  if (!value.endsWith('%')) {
    throw badRequest('invalid value for IntOrString: invalid type: string is not a percentage');
  }
  const digits = value.slice(0, -1);
  if (!/^[+-]?\d+$/.test(digits)) {
    const reason = `strconv.Atoi: parsing ${JSON.stringify(digits)}: invalid syntax`;
    throw badRequest(`invalid value for IntOrString: invalid value ${JSON.stringify(value)}: ${reason}`);
  }
  const share = (Number(digits) * total) / 100;
  return roundUp ? Math.ceil(share) : Math.floor(share);
}
