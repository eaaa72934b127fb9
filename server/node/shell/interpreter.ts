import { openInput, openOutput, type Surroundings } from '../applets/open.ts';
import { fileErrorText } from '../applets/options.ts';
import { globRegex } from '../applets/posix-regex.ts';
import { joinPath } from '../files/path.ts';
import type { AndOr, Command, List, Pipeline, Redirect } from './ast.ts';
import { builtins } from './builtins.ts';
import {
  BrokenPipeError,
  type ByteReader,
  createBytePipe,
  createCollector,
  readerOf,
  TooMuchInputError,
} from './byte-stream.ts';
import { createExpander, type Expander } from './expand.ts';
import { type Frame, findCommand, type Interpreter, readerAt, writerAt } from './frame.ts';
import { parseShell, ShellSyntaxError } from './parser.ts';
import {
  ExitShell,
  type Files,
  forkState,
  getVariable,
  Interrupted,
  LeaveLoop,
  MAX_CALL_DEPTH,
  MAX_JOBS,
  ReadonlyVariableError,
  ReturnFromFunction,
  ShellError,
  type ShellHost,
  setVariable,
} from './shell-state.ts';

/** A POSIX shell (busybox ash's manners) over a ShellHost. Models POSIX.1-2017 Shell Command Language §2.9. */
export function createInterpreter(host: ShellHost): Interpreter {
  const complain = (frame: Frame, text: string): Promise<void> =>
    writerAt(frame.files, 2).write(`${frame.state.name}: ${text}\n`);

  const expanderFor = (frame: Frame): Expander =>
    createExpander(frame.state, host, async (body) => {
      const collector = createCollector();
      const files = new Map(frame.files);
      files.set(1, { writer: collector });
      const inner = forkState(frame.state);
      frame.state.status = await inSubshell(
        () => runList(body, { ...frame, state: inner, files, tested: false }),
        frame,
        files,
      );
      return collector.text();
    });

  /** Runs what may leave the shell where leaving ends only the subshell. */
  const inSubshell = async (run: () => Promise<number>, frame: Frame, files: Files): Promise<number> => {
    try {
      return await run();
    } catch (error) {
      if (error instanceof ExitShell) return error.status;
      if (error instanceof ReturnFromFunction) return error.status;
      if (error instanceof LeaveLoop) return 0;
      if (error instanceof BrokenPipeError) return 141;
      if (
        error instanceof ShellError ||
        error instanceof ReadonlyVariableError ||
        error instanceof TooMuchInputError
      ) {
        await complain({ ...frame, files }, error.message);
        return error instanceof ShellError ? error.status : 2;
      }
      throw error;
    }
  };
  const check = async (frame: Frame): Promise<void> => {
    await host.breathe();
    if (frame.signal.aborted) throw new Interrupted('interrupted');
    for (const name of host.takeSignals()) {
      const action = frame.state.traps.get(name);
      if (!action) continue;
      const status = frame.state.status;
      await runSource(action, { ...frame, tested: true });
      frame.state.status = status;
    }
  };

  const runSource = async (source: string, frame: Frame): Promise<number> => {
    let list: List;
    try {
      list = parseShell(source);
    } catch (error) {
      if (!(error instanceof ShellSyntaxError)) throw error;
      await complain(frame, error.message);
      frame.state.status = 2;
      return 2;
    }
    return runList(list, frame);
  };
  const runList = async (list: List, frame: Frame): Promise<number> => {
    for (const item of list) {
      await check(frame);
      if (item.background) startJob(item, frame);
      else frame.state.status = await runAndOr(item, frame);
    }
    // A trap that came due during the last command runs before the list is over.
    await check(frame);
    return frame.state.status;
  };
  const startJob = (item: AndOr, frame: Frame): void => {
    const running = [...frame.state.jobs.values()].filter((job) => job.finished === undefined);
    if (running.length >= MAX_JOBS) throw new ShellError('cannot fork: Resource temporarily unavailable');
    const id = frame.state.lastJob + 1;
    const aborter = new AbortController();
    const onAbort = (): void => aborter.abort();
    frame.signal.addEventListener('abort', onAbort, { once: true });
    const files = new Map(frame.files);
    files.set(0, { reader: readerOf('') });
    const inner: Frame = { state: forkState(frame.state), files, signal: aborter.signal, tested: false };
    const done = inSubshell(() => runAndOr({ ...item, background: false }, inner), inner, files)
      .catch((error: unknown) => {
        if (error instanceof Interrupted) return 143;
        throw error;
      })
      .finally(() => frame.signal.removeEventListener('abort', onAbort));
    const job = { id, done, aborter, finished: undefined as number | undefined };
    void done.then((status) => {
      job.finished = status;
    });
    frame.state.jobs.set(id, job);
    frame.state.lastJob = id;
    frame.state.status = 0;
  };
  const runAndOr = async (item: AndOr, frame: Frame): Promise<number> => {
    let status = await runPipeline(item.first, item.rest.length > 0 ? { ...frame, tested: true } : frame);
    for (const [index, { operator, pipeline }] of item.rest.entries()) {
      if ((operator === '&&') !== (status === 0)) continue;
      const last = index === item.rest.length - 1;
      status = await runPipeline(pipeline, last ? frame : { ...frame, tested: true });
    }
    return status;
  };
  const runPipeline = async (pipeline: Pipeline, frame: Frame): Promise<number> => {
    const inner: Frame = pipeline.negated ? { ...frame, tested: true } : frame;
    const [only] = pipeline.commands;
    let status: number;
    if (pipeline.commands.length === 1 && only) status = await runCommand(only, inner);
    else status = await runPipe(pipeline.commands, inner);
    if (pipeline.negated) status = status === 0 ? 1 : 0;
    frame.state.status = status;
    if (status !== 0 && frame.state.options.exitOnError && !frame.tested && !pipeline.negated)
      throw new ExitShell(status);
    return status;
  };
  const runPipe = async (commands: readonly Command[], frame: Frame): Promise<number> => {
    let input: ByteReader | undefined;
    const ends: Promise<number>[] = [];
    for (const [index, command] of commands.entries()) {
      const files = new Map(frame.files);
      if (input) files.set(0, { reader: input });
      const ownInput = input;
      const pipe = index < commands.length - 1 ? createBytePipe() : undefined;
      if (pipe) files.set(1, { writer: pipe.writer });
      input = pipe?.reader;
      const inner: Frame = { ...frame, state: forkState(frame.state), files, tested: false };
      ends.push(
        inSubshell(() => runCommand(command, inner), inner, files).finally(() => {
          pipe?.writer.end();
          ownInput?.close();
        }),
      );
    }
    const statuses = await Promise.allSettled(ends);
    for (const result of statuses) if (result.status === 'rejected') throw result.reason;
    const last = statuses.at(-1);
    return last?.status === 'fulfilled' ? last.value : 1;
  };

  const runCommand = async (command: Command, frame: Frame): Promise<number> => {
    await check(frame);
    if (command.kind === 'function') {
      frame.state.functions.set(command.name, command.body);
      return 0;
    }
    if (command.kind === 'simple') return runSimple(command, frame);
    return withRedirects(command.redirects, frame, (inner) => runCompound(command, inner));
  };
  const runCompound = async (
    command: Exclude<Command, { kind: 'simple' | 'function' }>,
    frame: Frame,
  ): Promise<number> => {
    const tested: Frame = { ...frame, tested: true };
    switch (command.kind) {
      case 'group':
        return runList(command.body, frame);
      case 'subshell':
        return inSubshell(
          () => runList(command.body, { ...frame, state: forkState(frame.state) }),
          frame,
          frame.files,
        );
      case 'if':
        for (const branch of command.branches) {
          if ((await runList(branch.condition, tested)) === 0) return runList(branch.body, frame);
        }
        frame.state.status = 0;
        return command.otherwise ? runList(command.otherwise, frame) : 0;
      case 'loop': {
        let status = 0;
        while (((await runList(command.condition, tested)) === 0) !== command.until) {
          const left = await loopBody(command.body, frame);
          status = frame.state.status;
          if (left) break;
        }
        return status;
      }
      case 'for': {
        const expander = expanderFor(frame);
        const values: string[] = [];
        if (command.words) for (const word of command.words) values.push(...(await expander.fields(word)));
        else values.push(...frame.state.positional);
        frame.state.status = 0;
        for (const value of values) {
          setVariable(frame.state, command.name, value);
          if (await loopBody(command.body, frame)) break;
        }
        return frame.state.status;
      }
      case 'case': {
        const expander = expanderFor(frame);
        const subject = await expander.text(command.subject);
        for (const item of command.items) {
          for (const word of item.patterns) {
            if (globRegex(await expander.pattern(word)).test(subject)) {
              frame.state.status = 0;
              return runList(item.body, frame);
            }
          }
        }
        return 0;
      }
    }
  };
  /** True: `break` left the loop. */
  const loopBody = async (body: List, frame: Frame): Promise<boolean> => {
    try {
      await runList(body, frame);
      return false;
    } catch (error) {
      if (!(error instanceof LeaveLoop)) throw error;
      if (error.levels > 1) {
        error.levels -= 1;
        throw error;
      }
      return error.how === 'break';
    }
  };

  const surroundings = (frame: Frame): Surroundings => ({
    files: host.files,
    cwd: frame.state.cwd,
    stdin: readerAt(frame.files, 0),
    stdout: writerAt(frame.files, 1),
    stderr: writerAt(frame.files, 2),
    breathe: () => host.breathe(),
  });
  const withRedirects = async (
    redirects: readonly Redirect[],
    frame: Frame,
    run: (frame: Frame) => Promise<number>,
  ): Promise<number> => {
    if (redirects.length === 0) return run(frame);
    const ends: (() => Promise<void>)[] = [];
    const opened = await openAll(redirects, frame, ends);
    if (!opened) return 1;
    try {
      return await run({ ...frame, files: opened });
    } finally {
      for (const end of ends) await end();
    }
  };
  const openAll = async (
    redirects: readonly Redirect[],
    frame: Frame,
    ends: (() => Promise<void>)[],
  ): Promise<Files | undefined> => {
    const files = new Map(frame.files);
    const expander = expanderFor(frame);
    for (const redirect of redirects) {
      const target = await expander.text(redirect.target);
      const around = { ...surroundings({ ...frame, files }) };
      try {
        if (redirect.operator === '<<') files.set(redirect.fd, { reader: readerOf(target) });
        else if (redirect.operator === '<' || redirect.operator === '<>')
          files.set(redirect.fd, { reader: await openInput(around, target) });
        else if (redirect.operator === '>&' || redirect.operator === '<&') {
          if (target === '-') files.delete(redirect.fd);
          else {
            const source = files.get(Number(target));
            if (!source) {
              await complain(frame, `${target}: bad file descriptor`);
              return undefined;
            }
            files.set(redirect.fd, source);
          }
        } else {
          const writer = await openOutput(around, target, redirect.operator === '>>');
          ends.push(() => writer.end());
          files.set(redirect.fd, { writer });
        }
      } catch (error) {
        const text = fileErrorText(error);
        if (text === undefined) throw error;
        const verb = redirect.operator.startsWith('<') ? "can't open" : "can't create";
        await complain(
          frame,
          `${verb} ${target}: ${text === 'No such file or directory' && verb === "can't open" ? 'no such file' : text === 'No such file or directory' ? 'nonexistent directory' : text}`,
        );
        return undefined;
      }
    }
    return files;
  };

  const runSimple = async (command: Extract<Command, { kind: 'simple' }>, frame: Frame): Promise<number> => {
    const expander = expanderFor(frame);
    const words: string[] = [];
    const before = frame.state.status;
    for (const word of command.words) words.push(...(await expander.fields(word)));
    if (words.length === 0) {
      frame.state.status = 0;
      for (const { name, value } of command.assignments)
        setVariable(frame.state, name, await expander.text(value));
      const status = frame.state.status;
      return withRedirects(command.redirects, frame, async () => status);
    }
    if (frame.state.options.trace)
      await writerAt(frame.files, 2).write(`${getVariable(frame.state, 'PS4') ?? '+ '}${words.join(' ')}\n`);
    frame.state.status = before;
    const saved = new Map<string, ReturnType<typeof frame.state.variables.get>>();
    for (const { name, value } of command.assignments) {
      const text = await expander.text(value);
      saved.set(name, frame.state.variables.get(name));
      setVariable(frame.state, name, text, { exported: true });
    }
    try {
      // `exec` with redirections only changes the shell's own files for good.
      if (words.length === 1 && words[0] === 'exec') {
        const opened = await openAll(command.redirects, frame, []);
        if (!opened) return 1;
        const own = frame.files as Map<number, unknown>;
        own.clear();
        for (const [fd, file] of opened) own.set(fd, file);
        return 0;
      }
      return await withRedirects(command.redirects, frame, (inner) =>
        runWords(words, inner, { functions: true }),
      );
    } finally {
      for (const [name, variable] of saved) {
        if (variable) frame.state.variables.set(name, variable);
        else frame.state.variables.delete(name);
      }
    }
  };

  const runWords = async (
    words: readonly string[],
    frame: Frame,
    options: { functions: boolean },
  ): Promise<number> => {
    const name = words[0] ?? '';
    const special = builtins[name];
    const body = options.functions ? frame.state.functions.get(name) : undefined;
    if (body) return callFunction(body, words, frame);
    if (special) return special({ words, frame, interpreter });
    const path = findCommand(name, frame.state, host);
    const applet = path && host.applets.get(path);
    if (applet) return host.runApplet(applet, words, frame.state, frame.files, frame.signal);
    const status = await host.runProgram(words, frame.state, frame.files, frame.signal);
    if (status !== undefined) return status;
    if (name.includes('/') && (await host.files.stat(joinPath(frame.state.cwd, name)))) {
      await complain(frame, `${name}: Permission denied`);
      return 126;
    }
    await complain(frame, `${name}: not found`);
    return 127;
  };
  const callFunction = async (body: Command, words: readonly string[], frame: Frame): Promise<number> => {
    const { state } = frame;
    if (state.depth >= MAX_CALL_DEPTH) throw new ShellError('maximum function nesting level exceeded');
    const positional = state.positional;
    state.positional = words.slice(1);
    state.depth += 1;
    state.locals.push(new Map());
    try {
      return await runCommand(body, frame);
    } catch (error) {
      if (error instanceof ReturnFromFunction) return error.status;
      throw error;
    } finally {
      for (const [name, variable] of state.locals.pop() ?? []) {
        if (variable) state.variables.set(name, variable);
        else state.variables.delete(name);
      }
      state.depth -= 1;
      state.positional = positional;
    }
  };
  const interpreter: Interpreter = { runSource, runList, runWords, host };
  return interpreter;
}
