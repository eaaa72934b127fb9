import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { createManualClock } from '#server/base';
import { createMemoryFileSystem } from '../files/memory-files.ts';
import { run, sh, start } from '../testing/run.ts';

const cases: [name: string, script: string, stdout: string, code?: number][] = [
  ['words and quotes', `echo a "b  c" 'd $x' e\\ f`, 'a b  c d $x e f\n'],
  ['variables', 'x=1; y="$x 2"; echo $y "${y}" ${z:-none} ${#y}', '1 2 1 2 none 3\n'],
  ['trimming', 'f=/a/b.tar.gz; echo ${f##*/} ${f%.*} ${f%%.*} ${f#/}', 'b.tar.gz /a/b.tar /a/b a/b.tar.gz\n'],
  ['pipes', 'printf "b\\na\\nb\\n" | sort | uniq -c | tr -s " "', ' 1 a\n 2 b\n'],
  ['and or', 'true && echo yes || echo no; false && echo yes || echo no', 'yes\nno\n'],
  ['negation', '! false && echo ok', 'ok\n'],
  ['if', 'if [ 1 -lt 2 ]; then echo less; elif true; then echo x; else echo more; fi', 'less\n'],
  ['for', 'for i in 1 2 "3 4"; do echo "<$i>"; done', '<1>\n<2>\n<3 4>\n'],
  [
    'while and break',
    'i=0; while true; do i=$((i+1)); [ $i -eq 3 ] && continue; [ $i -gt 4 ] && break; echo $i; done',
    '1\n2\n4\n',
  ],
  ['case', 'case foobar in x*) echo x;; foo*|bar) echo foo;; *) echo other;; esac', 'foo\n'],
  ['functions', 'f() { local a=$1; echo "$a:$#"; return 3; }; f one two; echo $?', 'one:2\n3\n'],
  ['substitution', 'echo "$(echo a; echo b)" `echo c` $(echo d e)', 'a\nb c d e\n'],
  ['arithmetic', 'echo $((2+3*4)) $(( (1<<4) | 1 )) $((7/2)) $((5>3?1:0))', '14 17 3 1\n'],
  [
    'redirections',
    'echo one > /tmp/f; echo two >> /tmp/f; cat < /tmp/f; ls /nope 2>/dev/null; echo $?',
    'one\ntwo\n1\n',
  ],
  ['stderr to stdout', '(echo out; echo err >&2) 2>&1 | sort', 'err\nout\n'],
  ['here document', 'x=1; cat <<EOF\na $x\nEOF\ncat <<"EOF"\n$x\nEOF', 'a 1\n$x\n'],
  ['globs', 'cd /tmp; touch b.txt a.txt; echo *.txt "*.txt" nope*', 'a.txt b.txt *.txt nope*\n'],
  ['subshell', 'x=1; (x=2; cd /tmp); echo $x $PWD', '1 /\n'],
  [
    'positional',
    'set -- a "b c"; echo $# "$@"; shift; echo $1; for i; do echo $i; done',
    '2 a b c\nb c\nb c\n',
  ],
  ['read', 'echo "a b c" | while read x y; do echo "$y,$x"; done', 'b c,a\n'],
  ['set -e', 'set -e; false; echo never', '', 1],
  ['set -e in a condition', 'set -e; if false; then :; fi; false || true; echo here', 'here\n'],
  ['exit', 'echo a; exit 7; echo b', 'a\n', 7],
  ['exit trap', 'trap "echo bye" EXIT; echo hi; exit 2', 'hi\nbye\n', 2],
  ['background', 'sleep 1 & wait; echo done', 'done\n'],
  ['eval', 'x="echo hi"; eval "$x there"', 'hi there\n'],
  ['env of a command', 'A=1 env | grep ^A=; echo "[$A]"', 'A=1\n[]\n'],
  ['xargs', 'echo "a b c" | xargs -n 1 echo -', '- a\n- b\n- c\n'],
  ['find', 'mkdir -p /tmp/d/e; touch /tmp/d/e/f.txt; find /tmp/d -name "*.txt"', '/tmp/d/e/f.txt\n'],
  ['sed', 'printf "a=1\\nb=2\\n" | sed -n "s/^b=\\(.*\\)/B:\\1/p"', 'B:2\n'],
  ['grep', 'printf "foo\\nbar\\nbaz\\n" | grep -c "^ba[rz]$"', '2\n'],
  ['tar', 'cd /tmp; mkdir t; echo hi > t/a; tar cf - t | (mkdir o; cd o; tar xf -; cat t/a)', 'hi\n'],
  ['head of a device', 'head -c 5 /dev/zero | wc -c', '5\n'],
];

describe('sh', () => {
  it.each(cases)('%s', async (_name, script, stdout, code = 0) => {
    const end = await sh(script);
    expect({ stdout: end.stdout, code: end.code, stderr: end.stderr.replace(/^ls: .*\n/, '') }).toEqual({
      stdout,
      code,
      stderr: '',
    });
  });

  it('streams three million bytes and keeps the status', async () => {
    const end = await sh('head -c 3000000 /dev/zero; exit 4');
    expect([end.bytes, end.code]).toEqual([3_000_000, 4]);
  });

  it('passes standard input through', async () => {
    expect((await sh('cat; echo end', { stdin: 'a\nb' })).stdout).toBe('a\nbend\n');
    expect((await run(['cat'], { stdin: 'plain' })).stdout).toBe('plain');
  });

  it('runs commands from standard input and keeps its state', async () => {
    expect((await run(['sh'], { stdin: 'x=1\ncd /tmp\nif true; then\necho $x $PWD\nfi\n' })).stdout).toBe(
      '1 /tmp\n',
    );
  });

  it('ends with 141 when nobody reads, and goes on', async () => {
    expect((await sh('yes | head -n 2; echo after')).stdout).toBe('y\ny\nafter\n');
  });

  it('says what is wrong', async () => {
    expect(await sh('nope')).toMatchObject({ code: 127, stderr: 'sh: nope: not found\n' });
    expect(await sh('echo "a')).toMatchObject({
      code: 2,
      stderr: 'sh: syntax error: unterminated quoted string\n',
    });
    expect(await sh('cat /nope')).toMatchObject({
      code: 1,
      stderr: "cat: can't open '/nope': No such file or directory\n",
    });
    expect(await sh('echo x > /no/such/dir')).toMatchObject({
      code: 1,
      stderr: "sh: can't create /no/such/dir: nonexistent directory\n",
    });
  });

  it('is killed at once, even in a busy loop', async () => {
    const { process } = start(['sh', '-c', 'while :; do :; done']);
    const settled = process.exited;
    await new Promise((resolve) => setImmediate(resolve));
    process.kill();
    expect(await settled).toBe(137);
  });

  it('runs a trap on SIGTERM', async () => {
    const clock = createManualClock();
    const { process, stdout } = start(
      ['sh', '-c', 'trap "echo term; exit 5" TERM; echo ready; sleep 1000 & wait'],
      { clock, init: true },
    );
    const seen: string[] = [];
    const ready = new Promise<void>((resolve) => {
      stdout.on('data', (chunk: Buffer) => {
        seen.push(chunk.toString());
        if (seen.join('').includes('ready')) resolve();
      });
    });
    await ready;
    process.signal('SIGTERM');
    expect(await process.exited).toBe(5);
    expect(seen.join('')).toBe('ready\nterm\n');
  });

  it('reads lines as they come', async () => {
    const stdin = new PassThrough();
    const { process, stdout } = start(['sh', '-c', 'read a; echo "got $a"; read b; echo "got $b"'], {
      stdin,
    });
    const lines: string[] = [];
    const first = new Promise<void>((resolve) =>
      stdout.on('data', (chunk: Buffer) => (lines.push(chunk.toString()), resolve())),
    );
    stdin.write('one\n');
    await first;
    expect(lines.join('')).toBe('got one\n');
    stdin.write('two\n');
    await process.exited;
    expect(lines.join('')).toBe('got one\ngot two\n');
  });

  it('changes root', async () => {
    const files = createMemoryFileSystem(
      { '/host/var/lib/kubelet/kubeadm-flags.env': 'KUBELET_KUBEADM_ARGS="--cloud-provider=external"\n' },
      { clock: { now: () => 0 } },
    );
    expect(
      await run(['chroot', '/host', 'cat', '/var/lib/kubelet/kubeadm-flags.env'], { files }),
    ).toMatchObject({ code: 0, stdout: 'KUBELET_KUBEADM_ARGS="--cloud-provider=external"\n' });
    expect(await sh('chroot /host sh -c "cd /var/lib/kubelet; ls; pwd"', { files })).toMatchObject({
      stdout: 'kubeadm-flags.env\n/var/lib/kubelet\n',
    });
  });
});
