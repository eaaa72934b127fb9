import type { Image } from '../contract.ts';
import { httpEcho } from '../programs/http-echo.ts';
import { nginx, nginxFiles } from '../programs/nginx.ts';
import { pause } from '../programs/pause.ts';

/** The images every node can pull. */
export function standardImages(): Image[] {
  return [
    {
      repository: 'registry.k8s.io/pause',
      tags: ['3.10.1', /^3\.\d+(\.\d+)?$/],
      entrypoint: ['/pause'],
      command: [],
      size: 319_582,
      user: 65_535,
      programs: { '/pause': pause },
    },
    {
      repository: 'docker.io/library/nginx',
      tags: ['1.29', /^1\.\d+(\.\d+)?(-alpine)?$/, 'alpine', 'stable', 'mainline'],
      entrypoint: ['nginx'],
      command: ['-g', 'daemon off;'],
      env: { NGINX_VERSION: '1.29.4' },
      size: 59_772_801,
      programs: { '/usr/sbin/nginx': nginx },
      files: nginxFiles,
    },
    {
      repository: 'docker.io/hashicorp/http-echo',
      tags: ['1.0', /^\d+\.\d+(\.\d+)?$/],
      entrypoint: ['/http-echo'],
      command: [],
      size: 3_123_456,
      user: 65_532,
      programs: { '/http-echo': httpEcho },
    },
  ];
}
