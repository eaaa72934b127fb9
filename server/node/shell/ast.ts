/** A shell program. Words are kept in parts, because quoting decides what expansion does to them. */
export type WordPart =
  | { kind: 'text'; text: string; quoted: boolean }
  | { kind: 'parameter'; name: string; quoted: boolean; operator?: string; argument?: Word; length?: boolean }
  | { kind: 'command'; body: List; quoted: boolean }
  | { kind: 'arithmetic'; expression: Word; quoted: boolean };

export type Word = readonly WordPart[];

export interface Redirect {
  readonly fd: number;
  readonly operator: '<' | '>' | '>>' | '>|' | '<>' | '<&' | '>&' | '<<';
  readonly target: Word;
}

export interface Assignment {
  readonly name: string;
  readonly value: Word;
}

export type Command =
  | {
      kind: 'simple';
      assignments: readonly Assignment[];
      words: readonly Word[];
      redirects: readonly Redirect[];
    }
  | { kind: 'group' | 'subshell'; body: List; redirects: readonly Redirect[] }
  | {
      kind: 'if';
      branches: readonly { condition: List; body: List }[];
      otherwise: List | undefined;
      redirects: readonly Redirect[];
    }
  | { kind: 'loop'; until: boolean; condition: List; body: List; redirects: readonly Redirect[] }
  | {
      kind: 'for';
      name: string;
      words: readonly Word[] | undefined;
      body: List;
      redirects: readonly Redirect[];
    }
  | {
      kind: 'case';
      subject: Word;
      items: readonly { patterns: readonly Word[]; body: List }[];
      redirects: readonly Redirect[];
    }
  | { kind: 'function'; name: string; body: Command; redirects: readonly Redirect[] };

export interface Pipeline {
  readonly negated: boolean;
  readonly commands: readonly Command[];
}

/** `a && b || c`, and whether it runs in the background. */
export interface AndOr {
  readonly first: Pipeline;
  readonly rest: readonly { operator: '&&' | '||'; pipeline: Pipeline }[];
  readonly background: boolean;
}

export type List = readonly AndOr[];
