import type { Image } from '../contract.ts';
import { busyboxPrograms } from '../programs/busybox.ts';
import { httpEcho } from '../programs/http-echo.ts';
import { nginx, nginxFiles } from '../programs/nginx.ts';
import { pause } from '../programs/pause.ts';

const BUSYBOX_FILES = {
  '/etc/passwd': 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/home:/bin/false\n',
  '/etc/group': 'root:x:0:\nnobody:x:65534:\n',
};

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
      programs: { ...busyboxPrograms({ directories: ['/usr/bin', '/bin'], shells: ['sh', 'bash', 'dash'], without: ['ps'] }), '/usr/sbin/nginx': nginx },
      files: { ...BUSYBOX_FILES, ...nginxFiles },
    },
    {
      repository: 'docker.io/library/busybox',
      tags: ['1.37', /^1\.\d+(\.\d+)?$/, 'stable', 'musl', 'glibc', 'uclibc'],
      entrypoint: [],
      command: ['sh'],
      size: 2_223_685,
      programs: busyboxPrograms({ directories: ['/bin'], shells: ['sh', 'ash'] }),
      files: BUSYBOX_FILES,
    },
    {
      repository: 'docker.io/library/alpine',
      tags: ['3.22', /^3\.\d+(\.\d+)?$/],
      entrypoint: [],
      command: ['/bin/sh'],
      size: 3_802_452,
      programs: busyboxPrograms({ directories: ['/bin', '/usr/bin'], shells: ['sh', 'ash'] }),
      files: { ...BUSYBOX_FILES, '/etc/os-release': 'NAME="Alpine Linux"\nID=alpine\nVERSION_ID=3.22.1\nPRETTY_NAME="Alpine Linux v3.22"\n', '/etc/alpine-release': '3.22.1\n' },
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
