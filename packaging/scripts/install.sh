#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Lays the JAX backend of an unpacked tarball into a tritonserver's backend directory.

set -euo pipefail

ROOT=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
readonly ROOT
readonly MARKER=.tritonserver-jax.json

usage() {
    cat <<EOF
Usage: install.sh --backends DIR [--with-env] [--python PATH] [--check] [--force]

Installs the JAX backend of this tarball as DIR/jax. Everything is checked before anything is
touched. The new backend is made beside the old one and moved into place; an environment that is
there is kept (setup_env.sh brings it up to date). When a step fails, the backend from before is
put back.

  --backends DIR  the server's backend directory (/opt/tritonserver/backends in a release image)
  --with-env      also make the Python environment there, by setup_env.sh
  --python PATH   the Python for it; default: the first suitable one on PATH
  --check         only check whether it can be installed; change nothing
  --force         replace another build of the backend, or what else is at DIR/jax; install into
                  the server of another release
  --help          show this
EOF
}

say() { printf '==> %s\n' "$*"; }
die() {
    printf 'install.sh: error: %s\n' "$*" >&2
    exit 1
}
usage_error() {
    printf 'install.sh: %s (--help shows the options)\n' "$*" >&2
    exit 2
}

backends=
with_env=no
python=
check=no
force=no
while (($#)); do
    case $1 in
        --backends | --python)
            (($# >= 2)) && [[ -n $2 ]] || usage_error "$1: expected a value"
            case $1 in
                --backends) backends=$2 ;;
                --python) python=$2 ;;
            esac
            shift 2
            ;;
        --with-env) with_env=yes && shift ;;
        --check) check=yes && shift ;;
        --force) force=yes && shift ;;
        --help | -h) usage && exit 0 ;;
        *) usage_error "$1: no such option" ;;
    esac
done
[[ -n $backends ]] || usage_error "--backends: expected the server's backend directory, got nothing"
[[ -z $python || $with_env == yes ]] || usage_error "--python: expected together with --with-env"

# -- what is to be installed ----------------------------------------------------------------------

for tool in flock sha256sum; do
    command -v "$tool" >/dev/null || die "$tool: expected on PATH, found none; apt-get install util-linux coreutils"
done
for name in SHA256SUMS BUILD_INFO.json lib/libtriton_jax.so; do
    [[ -f $ROOT/$name ]] || die "$ROOT/$name: expected it, found none; run the install.sh of an unpacked tarball"
done
if ! failed=$(cd -- "$ROOT" && sha256sum --check --strict --quiet SHA256SUMS 2>&1); then
    die "$ROOT: a file is not the one that was released; unpack the tarball again.
$failed"
fi

# One top-level key of a BUILD_INFO.json, which is written with one key a line.
build_info() { sed -nE 's/^  "'"$2"'": "([^"]*)",?$/\1/p' "$1"; }
describe() {
    printf 'tritonserver-jax %s for release %s' \
        "$(build_info "$1" project_version)" "$(build_info "$1" release)"
}
new=$(describe "$ROOT/BUILD_INFO.json")

# Only what is listed gets in, whatever else lies in the folder; lib/ is laid flat, because Triton
# looks for <backends>/jax/libtriton_jax.so.
listed=()
laid_flat=
while IFS= read -r line; do
    name=${line:66}
    flat=${name#lib/}
    [[ ${flat##*/} != model.py ]] || die "$name: a model.py would make Triton take this for a Python-based backend; nothing was installed"
    [[ $name != /* && /$name/ != */../* ]] || die "SHA256SUMS: expected a path inside the folder, got $name; nothing was installed"
    listed+=("$name")
    laid_flat+="${line:0:64}  $flat"$'\n'
done <"$ROOT/SHA256SUMS"

# -- where to -------------------------------------------------------------------------------------

[[ -d $backends ]] || die "$backends: expected the server's backend directory, found none; it is /opt/tritonserver/backends in a release image"
[[ -w $backends && -x $backends ]] || die "$backends: expected to be allowed to write there; run as its owner"
backends=$(cd -- "$backends" && pwd -P)
# A backend's own folder, or the server's, would get a backend that no server looks for.
if compgen -G "$backends/libtriton_*.so" >/dev/null || [[ -f $backends/BUILD_INFO.json || $backends == */backends/jax ]]; then
    die "$backends: expected the folder that holds the backends, got one backend's; use --backends ${backends%/*}"
fi
if [[ -d $backends/backends || -f $backends/bin/tritonserver ]]; then
    die "$backends: expected the folder that holds the backends, got the server's; use --backends $backends/backends"
fi
target=$backends/jax
stage=$backends/.jax.new.$$
old=$backends/.jax.old.$$
trash=$backends/.jax.trash.$$

there() { [[ -e $1 || -L $1 ]]; }

# Gone from where it counts at once, however long the removal takes.
discard() {
    if there "$1"; then
        mv -T -- "$1" "$trash"
        rm -rf -- "$trash"
    fi
}

# Moves an environment to the backend that it belongs to. setup_env.sh keeps the one from before
# aside until the new one is complete.
move_env() {
    local env=$1/env
    if [[ -d $1/.env.old && ! -f $env/$MARKER ]]; then
        env=$1/.env.old
    fi
    if [[ -d $env && ! -L $1 && -d $2 && ! -e $2/env ]]; then
        mv -T -- "$env" "$2/env"
    fi
}

# Whether a backend has the environment that was made for this very build of it.
env_fits() {
    local wheel
    wheel=$(sed -nE 's/^([0-9a-f]{64})  wheel\/.*$/\1/p' "$1/SHA256SUMS" 2>/dev/null) || return 1
    [[ -n $wheel ]] && grep -qF "\"wheel_sha256\": \"$wheel\"" "$1/env/$MARKER" 2>/dev/null
}

# Puts the backend from before back, with its environment, wherever that was on its way.
put_back() {
    local from
    for from in "$backends"/.jax.new.* "$target"; do
        move_env "$from" "$old"
    done
    discard "$target"
    mv -T -- "$old" "$target"
}

if [[ $check == no ]]; then
    exec 8<"$backends"
    if ! flock --nonblock 8; then
        say "waiting for another install.sh in $backends"
        flock 8
    fi
    # One that was killed has left the old backend aside.
    shopt -s nullglob
    for old in "$backends"/.jax.old.*; do
        if env_fits "$target"; then
            discard "$old" # it was killed when all was done
        else
            say "an earlier installation was interrupted: putting the backend back"
            put_back
        fi
    done
    shopt -u nullglob
    old=$backends/.jax.old.$$
    rm -rf -- "$backends"/.jax.new.* "$backends"/.jax.trash.*
fi

# The server that the folder belongs to, as far as it says what it is.
expected_version=$(build_info "$ROOT/BUILD_INFO.json" server_version)
server_version=$(cat -- "$backends/../TRITON_VERSION" 2>/dev/null || true)
server=
named=no
if [[ -z $server_version && $backends == /opt/tritonserver/backends ]]; then
    server_version=${TRITON_SERVER_VERSION:-}
    # Some images have only the name of the release.
    if [[ -z $server_version && -n ${NVIDIA_TRITON_SERVER_VERSION:-} ]]; then
        named=yes
        if [[ $NVIDIA_TRITON_SERVER_VERSION != "$(build_info "$ROOT/BUILD_INFO.json" release)" ]]; then
            server="of release $NVIDIA_TRITON_SERVER_VERSION"
        fi
    fi
fi
if [[ -n $server_version && $server_version != "$expected_version" ]]; then
    server=$server_version
fi
if [[ -n $server ]]; then
    refusal="this is $new (server version $expected_version), and the server there is $server; take the tarball of its release"
    [[ $force == yes ]] || die "$backends: $refusal, or use --force"
    printf 'install.sh: warning: %s\n' "$refusal" >&2
elif [[ -z $server_version && $named == no ]]; then
    say "the server there does not say its release: see that it is $(build_info "$ROOT/BUILD_INFO.json" release) (server version $expected_version)"
fi

# What is there already.
installed=no
if [[ -L $target || (-e $target && ! -d $target) ]]; then
    [[ $force == yes ]] || die "$target: expected a folder or nothing, found something else; remove it, or use --force"
elif [[ -d $target ]]; then
    if cmp --silent -- - "$target/SHA256SUMS" <<<"${laid_flat%$'\n'}"; then
        if (cd -- "$target" && sha256sum --check --strict --status SHA256SUMS 2>/dev/null); then
            say "already installed: $new in $target"
            installed=yes
        else
            say "repairing: a file of $new in $target was changed"
        fi
    elif [[ $force == no ]]; then
        if [[ -f $target/BUILD_INFO.json ]]; then
            die "$target: holds another build ($(describe "$target/BUILD_INFO.json")); this one is $new; use --force to replace it"
        fi
        die "$target: holds something that is no JAX backend of this project; move it away, or use --force to replace it"
    fi
fi

# Room for it; setup_env.sh looks after that of the environment.
needed_kib=$(cd -- "$ROOT" && du -k --apparent-size -c -- "${listed[@]}" | awk 'END { print $1 + 64 }')
free_kib=$(df -Pk -- "$backends" | awk 'NR == 2 { print $4 }')
if [[ $installed == no ]] && ((free_kib < needed_kib)); then
    die "$backends: expected $needed_kib KiB of free space for the backend, found $free_kib KiB; nothing was installed"
fi

make_env() { "$1/scripts/setup_env.sh" --env "$target/env" ${python:+--python "$python"} "${@:2}"; }
if [[ $with_env == yes ]]; then
    # When it is made, that says the same again.
    if [[ $check == yes ]]; then exec 7>&1; else exec 7>/dev/null; fi
    make_env "$ROOT" --check >&7 || die "its Python environment cannot be made (above); nothing was installed"
    exec 7>&-
fi
if [[ $check == yes ]]; then
    [[ $installed == yes ]] || say "can be installed: $new in $target"
    exit 0
fi

# -- stage, and move into place -------------------------------------------------------------------

begun=no
finish() {
    local status=$?
    trap '' INT TERM HUP # what is put back is put back whole
    # Neither complete nor as it was before: the environment failed, or there was a signal.
    if there "$old" && ! env_fits "$target"; then
        put_back
        printf 'install.sh: error: %s is again as it was before\n' "$target" >&2
    elif [[ $begun == yes ]] && ! there "$old" && ! env_fits "$target"; then
        discard "$target"
        printf 'install.sh: error: nothing was installed\n' >&2
    fi
    discard "$old"
    rm -rf -- "$stage" "$trash"
    exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

umask 022 # the server may run as another user
if [[ $installed == no ]]; then
    mkdir -- "$stage"
    for name in "${listed[@]}"; do
        flat=${name#lib/}
        mkdir -p -- "$stage/$(dirname -- "$flat")"
        cp --preserve=mode,timestamps -- "$ROOT/$name" "$stage/$flat" || die "$stage/$flat: cannot be written (above); nothing was installed"
    done
    printf '%s' "$laid_flat" >"$stage/SHA256SUMS" || die "$stage/SHA256SUMS: cannot be written (above); nothing was installed"

    if there "$target"; then
        mv -T -- "$target" "$old"
        move_env "$old" "$stage"
    fi
    begun=yes
    mv -T -- "$stage" "$target"
    say "installed: $new in $target"
fi

if [[ $with_env == yes ]]; then
    make_env "$target"
elif [[ ! -d $target/env ]]; then
    say "next: make its Python environment with $target/scripts/setup_env.sh"
fi
begun=no
discard "$old"
