#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Emulates a cluster on this machine. See --help.
set -euo pipefail

usage() {
  cat <<'TXT'
usage: bench/emulated_cluster.sh NODES RANKS RATE COMMAND...
Runs a command on NODES nodes that are emulated on this machine. A node is a network namespace, joined to a switch by a link of RATE each way
(as tc writes it: 1gbit, 100mbit). In the command, `mpirun` starts RANKS ranks per node: over TCP between nodes, over shared memory within one.
Example: bench/emulated_cluster.sh 4 2 1gbit mpirun -n 8 ./program
Needs Linux, root, iproute2, and Open MPI. Ends with status 77 and a message where network namespaces or limited links are missing.
TXT
}
skip() {
  echo "emulated_cluster: skipped: $1" >&2
  exit 77
}
case ${1:-} in "" | -*) usage; exit 2 ;; esac
[ $# -ge 4 ] || { usage >&2; exit 2; }
nodes=$1 ranks=$2 rate=$3
shift 3
[ "$(uname -s)" = Linux ] || skip "this is not Linux"
[ "$(id -u)" -eq 0 ] || skip "only root may make network namespaces"
for command in ip tc unshare mpirun; do command -v $command >/dev/null || skip "there is no $command"; done

id=$$
dir=$(mktemp -d)
clean_up() {
  local node pid
  for ((node = 0; node < nodes; ++node)); do
    for pid in $(ip netns pids "gs$id-$node" 2>/dev/null); do kill -9 "$pid" 2>/dev/null || true; done
    ip netns del "gs$id-$node" 2>/dev/null || true
    rm -rf "/etc/netns/gs$id-$node"
  done
  ip link del "gs$id" 2>/dev/null || true
  rm -rf "$dir"
}
trap clean_up EXIT

# limited [-n namespace] device: limits the rate at which data leave through it.
limited() {
  local in=()
  [ "$1" != -n ] || { in=(-n "$2"); shift 2; }
  tc "${in[@]}" qdisc add dev "$1" root handle 1: htb default 1 &&
    tc "${in[@]}" class add dev "$1" parent 1: classid 1:1 htb rate "$rate" burst 64k cburst 64k quantum 60000
}
{ ip link add "gs$id" type bridge && ip link set "gs$id" up; } 2>/dev/null || skip "a bridge cannot be made"
for ((node = 0; node < nodes; ++node)); do
  name=gs$id-$node
  { ip netns add "$name" && ip link add "v$id.$node" type veth peer name e0 netns "$name"; } 2>/dev/null ||
    skip "network namespaces cannot be made"
  ip link set "v$id.$node" master "gs$id" up
  ip -n "$name" link set lo up
  ip -n "$name" addr add "10.99.0.$((node + 1))/24" dev e0
  ip -n "$name" link set e0 up
  { limited -n "$name" e0 && limited "v$id.$node"; } 2>/dev/null || skip "the rate of a link cannot be limited (tc, HTB)"
  mkdir -p "/etc/netns/$name"
  echo "127.0.0.1 localhost" >"/etc/netns/$name/hosts"
  for ((other = 0; other < nodes; ++other)); do echo "10.99.0.$((other + 1)) n$other" >>"/etc/netns/$name/hosts"; done
  echo "n$node slots=$ranks" >>"$dir/hosts"
done
# Replaces a remote shell: mpirun calls it with options, a host, and a command.
cat >"$dir/on_node" <<TXT
#!/usr/bin/env bash
while [[ \$1 == -* ]]; do shift; done
node=\${1#n}
shift
exec ip netns exec "gs$id-\$node" unshare --uts bash -c 'hostname "\$0"; exec bash -c "\$*"' "n\$node" "\$@"
TXT
chmod +x "$dir/on_node"
export OMPI_MCA_plm_rsh_agent="$dir/on_node" OMPI_MCA_orte_default_hostfile="$dir/hosts" OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self,vader
export OMPI_MCA_btl_tcp_if_include=e0 OMPI_MCA_oob_tcp_if_include=e0 OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_hwloc_base_binding_policy=none
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}  # otherwise every node would take all cores of this machine
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
"$dir/on_node" n0 "$(printf '%q ' "$@")"
