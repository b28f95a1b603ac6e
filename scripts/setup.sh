#!/usr/bin/env bash
# setup.sh makes sure that this machine has what caisson is built, tested and
# run with: a C compiler for the race detector, mmdebstrap for the images, and
# a Docker Engine that answers. What is there is left as it is. What is missing
# is installed from Debian's packages, which needs root.
#
# With --tests it also installs what the tests alone need: a registry, a
# second client of registries, Alpine's C library, docker compose, Prometheus, tmux, and
# from npm the SDKs of a cloud that calls functions and of agents, into the user's cache.
#
# It may be run again at any time; where all is there it takes a second.
set -euo pipefail

# A prefix for the paths of the system, for the tests of this file.
root=${CAISSON_SETUP_ROOT:-}
log=${CAISSON_DOCKERD_LOG:-/var/log/caisson-dockerd.log}
wait_seconds=${CAISSON_DOCKERD_WAIT:-90}

tests=no # whether what the tests alone need is wanted

say() { echo "setup: $*"; }
die() { echo "setup: $*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# engine_version prints the version of the engine that the environment names,
# and fails where none answers.
engine_version() { timeout 15 docker version --format '{{.Server.Version}}' 2>/dev/null; }

# context_name is the docker context in use; "default" is the local engine.
context_name() { docker context show 2>/dev/null || echo default; }

# chosen_elsewhere says that the user has named an engine, which is then the
# one to use: no other is started in its place.
chosen_elsewhere() {
	[ -n "${DOCKER_HOST:-}" ] || { have docker && [ "$(context_name)" != default ]; }
}

# missing_packages prints the Debian packages that are wanted and not there.
missing_packages() {
	local engine=$1
	have gcc || echo gcc
	[ -e "$root/usr/include/stdlib.h" ] || echo libc6-dev
	have mmdebstrap || echo mmdebstrap
	have unshare || echo util-linux
	have mount || echo mount
	if [ "$tests" = yes ]; then
		have bwrap || echo bubblewrap
		have docker-registry || echo docker-registry
		have skopeo || echo skopeo
		have ip || echo iproute2
		have musl-gcc || echo musl-tools
		have tmux || echo tmux
		have node || echo nodejs
		have npm || echo npm
		have git || echo git
		have curl || echo curl
		[ -x "$root/usr/bin/pip3" ] || echo python3-pip
		have prometheus && have promtool || echo prometheus
		have docker-compose || docker compose version >/dev/null 2>&1 || echo docker-compose
	fi
	[ "$engine" = none ] || return 0
	have dockerd || echo docker.io
	have docker || echo docker.io
	have iptables || echo iptables
}

# hold_services keeps services from being started by their packages until
# release_services: the tests start servers of their own, and the engine is started
# below. Who has a policy already keeps it.
policy=$root/usr/sbin/policy-rc.d
hold_services() {
	[ ! -e "$policy" ] || return 0
	mkdir -p "$(dirname "$policy")"
	trap release_services EXIT
	printf '#!/bin/sh\n# of caisson'"'"'s setup.sh, while it installs\nexit 101\n' >"$policy"
	chmod 755 "$policy"
}

release_services() {
	trap - EXIT
	! grep -qs "of caisson's setup.sh" "$policy" || rm -f "$policy"
}

# install_packages installs what is asked for, and says so.
install_packages() {
	say "installing $* (apt-get, a minute or two)"
	local out
	out=$(mktemp)
	if ! { apt-get -o DPkg::Lock::Timeout=300 update &&
		DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "$@"; } >"$out" 2>&1; then
		tail -n 15 "$out" >&2
		rm -f "$out"
		die "apt-get could not install $*; mend what it says above, and run this again"
	fi
	rm -f "$out"
	# From Debian 13 on the docker command is a package of its own.
	if ! have docker; then
		DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends docker-cli >/dev/null 2>&1 ||
			die "the docker command is missing: apt-get install docker-cli"
	fi
}

# fetch_sdk gets the packages that cmd/caisson/testdata/sdk names into the user's
# cache, once for each list of them.
fetch_sdk() {
	local from to
	from=$(dirname "$0")/../cmd/caisson/testdata/sdk
	to=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/caisson-tests/sdk
	[ "$(cat "$to/fetched" 2>/dev/null)" != "$(cat "$from/package-lock.json")" ] || return 0
	say "fetching the SDKs for the tests (npm ci)"
	mkdir -p "$to"
	rm -f "$to/fetched"
	cp "$from/package.json" "$from/package-lock.json" "$to/"
	npm ci --prefix "$to" --ignore-scripts --no-audit --no-fund >"$to/log" 2>&1 || {
		tail -n 15 "$to/log" >&2
		die "npm could not fetch the packages of $from; mend what it says above, and run this again"
	}
	cp "$from/package-lock.json" "$to/fetched"
}

# runs says whether process $1 is the program $2 and alive: one that was killed
# keeps its name and number until its parent takes notice.
runs() {
	[ -n "$1" ] && [ "$(cat "/proc/$1/comm" 2>/dev/null)" = "$2" ] &&
		! grep -q '^State:[[:space:]]*[ZX]' "/proc/$1/status" 2>/dev/null
}

# clear_stale removes a pid file whose process is gone, or is another program
# that has got its number since.
clear_stale() {
	local file=$1 program=$2
	[ -e "$file" ] || return 0
	if runs "$(tr -cd 0-9 <"$file")" "$program"; then
		return 0
	fi
	say "removing a stale $file"
	rm -f "$file"
}

# mount_cgroups gives dockerd the control groups that it needs, where nobody
# has mounted them.
mount_cgroups() {
	grep -q ' /sys/fs/cgroup' /proc/mounts && return 0
	mkdir -p /sys/fs/cgroup
	mount -t cgroup2 cgroup2 /sys/fs/cgroup || say "could not mount control groups; limits may not work"
}

# wait_for_engine polls until the engine answers. It gives up early where the
# process $1 has ended.
wait_for_engine() {
	local pid=${1:-} deadline=$((SECONDS + wait_seconds))
	until engine_version >/dev/null; do
		if [ -n "$pid" ] && ! kill -0 "$pid" 2>/dev/null; then
			return 1
		fi
		[ "$SECONDS" -lt "$deadline" ] || return 1
		sleep 0.2
	done
}

# start_by_hand starts dockerd where no systemd runs. It outlives this script.
start_by_hand() {
	mkdir -p "$(dirname "$log")"
	setsid dockerd "$@" >"$log" 2>&1 </dev/null &
	wait_for_engine $!
}

start_engine() {
	if [ -d "$root/run/systemd/system" ]; then
		say "starting the Docker Engine (systemctl start docker)"
		systemctl start docker || true
		wait_for_engine || die "the Docker Engine does not answer; journalctl -u docker says why"
		return
	fi
	clear_stale "$root/var/run/docker.pid" dockerd
	clear_stale "$root/var/run/docker/containerd/containerd.pid" containerd
	mount_cgroups
	if [ -e "$root/var/run/docker.pid" ]; then
		say "waiting for the dockerd that is running already"
		wait_for_engine || die "dockerd runs as process $(cat "$root/var/run/docker.pid") and does not answer; end it, and run this again"
		return
	fi
	say "starting dockerd (log: $log)"
	start_by_hand && return
	if grep -qi iptables "$log"; then
		say "dockerd cannot use iptables here: starting it without (containers then reach no outside network)"
		start_by_hand --iptables=false --ip6tables=false && return
	fi
	tail -n 15 "$log" >&2
	die "dockerd did not start; its last words stand above, the rest in $log"
}

main() {
	case "${1:-}" in
	"") ;;
	--tests) tests=yes ;;
	*) die "usage: setup.sh [--tests]" ;;
	esac
	have go || die "Go is missing: install Go $(sed -n 's/^go //p' "$(dirname "$0")/../go.mod") or newer from your system or go.dev"
	local engine=none version="" missing
	if have docker && version=$(engine_version); then
		engine=found
	elif chosen_elsewhere; then
		die "the engine that you named (${DOCKER_HOST:-context $(context_name)}) does not answer: start it, or unset DOCKER_HOST and DOCKER_CONTEXT"
	fi
	missing=$(missing_packages "$engine" | sort -u | tr '\n' ' ')
	missing=${missing% }
	if [ -n "$missing" ] || [ "$engine" = none ]; then
		if ! have apt-get || [ ! -e "$root/etc/debian_version" ]; then
			die "this is not Debian: install a Docker Engine (20.10 or newer), mmdebstrap and a C compiler, start the engine, and run this again"
		fi
		if [ "$(id -u)" -ne 0 ]; then
			[ -n "$missing" ] || die "no Docker Engine answers and only root can start one: sudo systemctl start docker (or join the docker group)"
			die "not root: run \"sudo apt-get install -y $missing\" and start the engine, or run this with sudo"
		fi
		# shellcheck disable=SC2086 # words are packages
		if [ -n "$missing" ]; then
			hold_services
			install_packages $missing
			release_services
		fi
		# Nor when the machine is started again: the packages' would listen for
		# everybody.
		for service in docker-registry prometheus; do
			if [[ " $missing " == *" $service "* ]] && [ -d "$root/run/systemd/system" ]; then
				systemctl disable --now "$service" >/dev/null 2>&1 || say "could not disable the service $service; the tests do not need it"
			fi
		done
	fi
	if [ "$engine" = none ]; then
		engine_version >/dev/null || start_engine
		version=$(engine_version)
	fi
	[ "$tests" = no ] || fetch_sdk
	say "ready: Docker Engine $version, mmdebstrap, gcc, $(go env GOVERSION)"
}

# Sourced, as the tests do, it only defines its functions.
if [ "${BASH_SOURCE[0]}" = "$0" ]; then
	main "$@"
fi
