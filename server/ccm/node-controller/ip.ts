/**
 * The canonical spelling of an IP address, undefined when it is none. Zeros may lead a decimal part, and an IPv4 address
 * written as IPv6 is the IPv4 one, as in Go's net.IP with netutils.ParseIPSloppy.
 */
export function canonicalIp(text: string): string | undefined {
  return ipv4(text) ?? ipv6(text);
}

export function isIpv6(canonical: string): boolean {
  return canonical.includes(':');
}

function ipv4(text: string): string | undefined {
  if (!/^\d+\.\d+\.\d+\.\d+$/.test(text)) return undefined;
  const parts = text.split('.').map(Number);
  return parts.every((part) => part <= 255) ? parts.join('.') : undefined;
}

function ipv6(text: string): string | undefined {
  if (!/^[0-9a-fA-F:.]+$/.test(text) || !text.includes(':') || !URL.canParse(`http://[${text}]/`))
    return undefined;
  const canonical = new URL(`http://[${text}]/`).hostname.slice(1, -1);
  const mapped = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(canonical);
  if (!mapped) return canonical;
  const [high = 0, low = 0] = [mapped[1], mapped[2]].map((group) => Number.parseInt(group ?? '', 16));
  return [high >> 8, high & 255, low >> 8, low & 255].join('.');
}
