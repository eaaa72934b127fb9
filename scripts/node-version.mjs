/** Ends the process with a message when this Node is too old; syntax here must run on any Node with ES modules. */
export function checkNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major > 22 || (major === 22 && minor >= 12) || (major === 20 && minor >= 20)) return;
  console.error(
    `kube-classroom: Node ${process.versions.node} is not supported.\n  To mend it: install Node 20.20 or later of the 20 line, or 22.12 or later.`,
  );
  process.exit(1);
}
