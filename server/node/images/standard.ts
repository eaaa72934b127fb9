import type { Image, Program } from '../contract.ts';
import { agnhost } from '../programs/agnhost.ts';
import { busyboxPrograms } from '../programs/busybox.ts';
import { ciliumAgent, ciliumOperator } from '../programs/cilium.ts';
import { coredns } from '../programs/coredns.ts';
import { csiLivenessProbe, kubevirtCsiDriver, nodeDriverRegistrar } from '../programs/csi.ts';
import { curl } from '../programs/curl.ts';
import { httpEcho } from '../programs/http-echo.ts';
import { networkTools } from '../programs/network-tools.ts';
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
      programs: {
        ...busyboxPrograms({
          directories: ['/usr/bin', '/bin'],
          shells: ['sh', 'bash', 'dash'],
          without: ['ps'],
          extra: { curl },
        }),
        '/usr/sbin/nginx': nginx,
      },
      files: { ...BUSYBOX_FILES, ...nginxFiles },
    },
    {
      repository: 'docker.io/library/busybox',
      tags: ['1.37', /^1\.\d+(\.\d+)?$/, 'stable', 'musl', 'glibc', 'uclibc'],
      entrypoint: [],
      command: ['sh'],
      size: 2_223_685,
      programs: busyboxPrograms({ directories: ['/bin'], shells: ['sh', 'ash'], extra: networkTools }),
      files: BUSYBOX_FILES,
    },
    {
      repository: 'docker.io/library/alpine',
      tags: ['3.22', /^3\.\d+(\.\d+)?$/],
      entrypoint: [],
      command: ['/bin/sh'],
      size: 3_802_452,
      programs: busyboxPrograms({
        directories: ['/bin', '/usr/bin'],
        shells: ['sh', 'ash'],
        extra: networkTools,
      }),
      files: {
        ...BUSYBOX_FILES,
        '/etc/os-release':
          'NAME="Alpine Linux"\nID=alpine\nVERSION_ID=3.22.1\nPRETTY_NAME="Alpine Linux v3.22"\n',
        '/etc/alpine-release': '3.22.1\n',
      },
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
    {
      repository: 'docker.io/curlimages/curl',
      tags: ['8.11.0', /^\d+\.\d+\.\d+$/],
      entrypoint: ['/entrypoint.sh'],
      command: ['curl'],
      env: { CURL_VERSION: '8_11_0' },
      user: 100,
      size: 9_461_760,
      programs: {
        ...busyboxPrograms({
          directories: ['/bin', '/usr/bin'],
          shells: ['sh', 'ash'],
          extra: { ...networkTools, curl },
        }),
        '/entrypoint.sh': curlEntrypoint,
      },
      files: BUSYBOX_FILES,
    },
    single('registry.k8s.io/coredns/coredns', ['v1.13.1', /^v1\.\d+\.\d+$/], '/coredns', coredns, 23_553_139),
    {
      ...single(
        'quay.io/cilium/cilium',
        ['v1.18.4', /^v1\.\d+\.\d+$/],
        '/usr/bin/cilium-agent',
        ciliumAgent,
        212_474_112,
      ),
      entrypoint: [],
      command: ['/usr/bin/cilium-agent'],
      programs: {
        ...busyboxPrograms({ directories: ['/usr/bin', '/bin'], shells: ['sh', 'bash'] }),
        '/usr/bin/cilium-agent': ciliumAgent,
      },
    },
    single(
      'quay.io/cilium/operator-generic',
      ['v1.18.4', /^v1\.\d+\.\d+$/],
      '/usr/bin/cilium-operator-generic',
      ciliumOperator,
      37_748_736,
    ),
    single(
      'quay.io/kubevirt/kubevirt-csi-driver',
      ['latest', /^v?\d+\.\d+\.\d+$/],
      '/kubevirt-csi-driver',
      kubevirtCsiDriver,
      73_400_320,
    ),
    single(
      'registry.k8s.io/sig-storage/csi-node-driver-registrar',
      ['v2.15.0', /^v2\.\d+\.\d+$/],
      '/csi-node-driver-registrar',
      nodeDriverRegistrar,
      14_680_064,
    ),
    single(
      'registry.k8s.io/sig-storage/livenessprobe',
      ['v2.17.0', /^v2\.\d+\.\d+$/],
      '/livenessprobe',
      csiLivenessProbe,
      14_365_491,
    ),
    single('registry.k8s.io/e2e-test-images/agnhost', ['2.57', /^2\.\d+$/], '/agnhost', agnhost, 51_105_200),
  ];
}

/** An image that is one program. */
function single(
  repository: string,
  tags: Image['tags'],
  path: string,
  program: Program,
  size: number,
): Image {
  return { repository, tags, entrypoint: [path], command: [], size, programs: { [path]: program } };
}

/** curlimages/curl's entry point: flags and URLs go to curl, anything else is a command. */
const curlEntrypoint: Program = {
  async run(process) {
    const given = process.argv.slice(1);
    const first = given[0] ?? '';
    const isCommand =
      first !== '' && !first.startsWith('-') && !/[/:.]/.test(first.replace(/^\/(bin|usr\/bin)\//, ''));
    const command = isCommand ? given : ['curl', ...given];
    const end = await process.spawn(command);
    if (end !== undefined) return end;
    return (await process.spawn(['curl', ...given])) ?? 127;
  },
};
