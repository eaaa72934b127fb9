import tseslint from 'typescript-eslint';

const clockAndChance =
  'Time, randomness and identity come in through the door: use Clock and Ids of #server/base.';

export default tseslint.config(
  {
    ignores: [
      'node_modules/**',
      '.cache/**',
      'data/**',
      'bench/results/**',
      '**/*.generated.ts',
      'scripts/**',
      '*.js',
      '*.cjs',
      '*.mjs',
    ],
  },
  ...tseslint.configs.recommendedTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true } },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: {
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { considerDefaultExhaustiveForUnions: true },
      ],
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/no-non-null-assertion': 'error',
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      '@typescript-eslint/require-await': 'off',
      '@typescript-eslint/restrict-template-expressions': 'off',
      '@typescript-eslint/prefer-promise-reject-errors': 'off',
      'no-empty': ['error', { allowEmptyCatch: false }],
      'no-restricted-syntax': [
        'error',
        { selector: 'ExportAllDeclaration', message: 'A door exports by name.' },
        {
          selector: "ThrowStatement > NewExpression[callee.name='Error']",
          message:
            'Throw a typed error: StatusError (kube), InternalError or OperationalError (base), or a named one of the room.',
        },
      ],
    },
  },
  {
    files: ['server/**/*.ts'],
    ignores: ['server/base/**', '**/*.test.ts', '**/testing/**'],
    rules: {
      'no-restricted-globals': [
        'error',
        { name: 'setTimeout', message: clockAndChance },
        { name: 'setInterval', message: clockAndChance },
      ],
      'no-restricted-properties': [
        'error',
        { object: 'Date', property: 'now', message: clockAndChance },
        { object: 'Math', property: 'random', message: clockAndChance },
        { object: 'crypto', property: 'randomUUID', message: clockAndChance },
      ],
    },
  },
  {
    files: ['**/*.test.ts', '**/testing/**', 'tests/**', 'bench/**'],
    rules: {
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-unsafe-call': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
      'no-restricted-syntax': 'off',
    },
  },
);
