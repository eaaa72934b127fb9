import { describe, expect, it } from 'vitest';
import { createManualClock } from '#server/base';
import { createMemoryFileSystem } from '#server/node';
import { CloudConfigError, parseCloudConfig, writeFiles } from './cloud-init.ts';
import { runGuestLine } from './guest-shell.ts';

const disk = () => createMemoryFileSystem({}, { clock: createManualClock() });
const text = (files: ReturnType<typeof disk>, path: string): string =>
  Buffer.from(files.readFile(path)).toString();

describe('cloud-init', () => {
  it('writes files with their mode and encoding, and lists commands', () => {
    const config = parseCloudConfig(
      [
        '## template: jinja',
        '#cloud-config',
        'write_files:',
        '- path: /etc/a/b.txt',
        "  permissions: '0640'",
        '  content: |',
        '    hello',
        '- path: /etc/c',
        '  encoding: base64',
        `  content: ${Buffer.from('world').toString('base64')}`,
        '- path: /etc/c',
        '  append: true',
        "  content: '!'",
        'runcmd:',
        '- echo one',
        '- [echo, "it\'s two"]',
      ].join('\n'),
    );
    expect(config.commands).toEqual(['echo one', "'echo' 'it'\\''s two'"]);
    const files = disk();
    writeFiles(files, config);
    expect(text(files, '/etc/a/b.txt')).toBe('hello\n');
    expect(files.stat('/etc/a/b.txt').mode & 0o777).toBe(0o640);
    expect(text(files, '/etc/c')).toBe('world!');
  });

  it.each([
    ['no header', 'write_files: []', 'user data does not begin with #cloud-config'],
    ['no YAML', '#cloud-config\n{', /^user data is no YAML/],
    [
      'an encoding it does not know',
      '#cloud-config\nwrite_files: [{path: /a, encoding: gz, content: x}]',
      /encoding "gz"/,
    ],
    ['a relative path', '#cloud-config\nwrite_files: [{path: a}]', /write_files/],
  ])('refuses %s', (_what, userData, message) => {
    expect(() => parseCloudConfig(userData)).toThrow(CloudConfigError);
    expect(() => parseCloudConfig(userData)).toThrow(message);
  });
});

describe('the guest shell', () => {
  const run = async (line: string) => {
    const files = disk();
    let log = '';
    const code = await runGuestLine(line, {
      files,
      log: (more) => void (log += more),
      commands: {
        echo: async (args, print) => {
          print(`${args.join(' ')}\n`);
          return 0;
        },
        false: async () => 1,
      },
    });
    return { code, log, files };
  };

  it('joins with && and stops at the first failure', async () => {
    expect(await run('echo a && false && echo b')).toMatchObject({ code: 1, log: 'a\n' });
  });

  it('redirects and appends', async () => {
    const { code, files } = await run(`echo success > /run/x/y && echo 'a  b' >> /run/x/y`);
    expect(code).toBe(0);
    expect(text(files, '/run/x/y')).toBe('success\na  b\n');
  });

  it('has only the commands it has', async () => {
    expect(await run('curl http://example.org')).toMatchObject({ code: 127, log: 'sh: curl: not found\n' });
  });
});
