#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Lays the JAX backend of an unpacked tarball into a tritonserver's backend directory.

set -euo pipefail

ROOT=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
readonly ROOT

usage() {
    cat <<EOF
Usage: install.sh --backends DIR [--with-env] [--force]

Installs the JAX backend of this tarball as DIR/jax. The new backend is made beside the old one and
moved into place; an environment that is there is kept (setup_env.sh brings it up to date).

  --backends DIR  the server's backend directory (/opt/tritonserver/backends in a release image)
  --with-env      also make the Python environment there, by setup_env.sh
  --force         replace another build of the backend, or what else is at DIR/jax
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
force=no
while (($#)); do
    case $1 in
        --backends)
            (($# >= 2)) && [[ -n $2 ]] || usage_error "$1: expected a value"
            backends=$2
            shift 2
            ;;
        --with-env) with_env=yes && shift ;;
        --force) force=yes && shift ;;
        --help | -h) usage && exit 0 ;;
        *) usage_error "$1: no such option" ;;
    esac
done
[[ -n $backends ]] || usage_error "--backends: expected the server's backend directory, got nothing"

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

# -- where to -------------------------------------------------------------------------------------

[[ -d $backends ]] || die "$backends: expected the server's backend directory, found none; it is /opt/tritonserver/backends in a release image"
[[ -w $backends && -x $backends ]] || die "$backends: expected to be allowed to write there; run as its owner"
backends=$(cd -- "$backends" && pwd -P)
target=$backends/jax

exec 8<"$backends"
if ! flock --nonblock 8; then
    say "waiting for another install.sh in $backends"
    flock 8
fi

# One that was killed between its two moves has left the old backend aside.
shopt -s nullglob
aside=("$backends"/.jax.old.*)
shopt -u nullglob
if [[ ! -e $target ]] && ((${#aside[@]} == 1)); then
    say "an earlier installation was interrupted: putting the backend back"
    mv -T -- "${aside[0]}" "$target"
    aside=()
fi
rm -rf -- "$backends"/.jax.new.* ${aside[@]+"${aside[@]}"}

# The server that the folder belongs to, as far as it says what it is.
server_version=$(cat -- "$backends/../TRITON_VERSION" 2>/dev/null || true)
if [[ -z $server_version && $backends == /opt/tritonserver/backends ]]; then
    server_version=${TRITON_SERVER_VERSION:-}
fi
expected_version=$(build_info "$ROOT/BUILD_INFO.json" server_version)
if [[ -n $server_version && $server_version != "$expected_version" ]]; then
    printf 'install.sh: warning: this is %s (server version %s), and the server there is %s; take the tarball of its release\n' \
        "$new" "$expected_version" "$server_version" >&2
fi

# -- stage ----------------------------------------------------------------------------------------

stage=$backends/.jax.new.$$
old=$backends/.jax.old.$$
finish() {
    local status=$?
    if [[ -e $old && ! -e $target ]]; then
        mv -T -- "$old" "$target"
    fi
    # The environment was moved last; it goes back with the backend that it belongs to.
    if [[ -d $stage/env && -d $target && ! -e $target/env ]]; then
        mv -T -- "$stage/env" "$target/env"
    fi
    rm -rf -- "$stage" "$old"
    exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

umask 022 # the server may run as another user
mkdir -- "$stage"
# Only what is listed, so that nothing else that lies in the folder gets in; lib/ is laid flat,
# because Triton looks for <backends>/jax/libtriton_jax.so.
while IFS= read -r line; do
    name=${line:66}
    flat=${name#lib/}
    [[ ${flat##*/} != model.py ]] || die "$name: a model.py would make Triton take this for a Python-based backend; nothing was installed"
    [[ $name != /* && /$name/ != */../* ]] || die "SHA256SUMS: expected a path inside the folder, got $name; nothing was installed"
    mkdir -p -- "$stage/$(dirname -- "$flat")"
    cp --preserve=mode,timestamps -- "$ROOT/$name" "$stage/$flat" || die "$stage/$flat: cannot be written (above); nothing was installed"
    printf '%s  %s\n' "${line:0:64}" "$flat" >>"$stage/SHA256SUMS"
done <"$ROOT/SHA256SUMS"

# -- compare with what is there -------------------------------------------------------------------

if [[ -L $target || (-e $target && ! -d $target) ]]; then
    [[ $force == yes ]] || die "$target: expected a folder or nothing, found something else; remove it, or use --force"
elif [[ -d $target ]]; then
    if cmp --silent -- "$stage/SHA256SUMS" "$target/SHA256SUMS"; then
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

# -- move into place ------------------------------------------------------------------------------

if [[ -z ${installed:-} ]]; then
    if [[ -d $target/env && ! -L $target ]]; then
        mv -T -- "$target/env" "$stage/env"
    fi
    if [[ -e $target || -L $target ]]; then
        mv -T -- "$target" "$old"
    fi
    mv -T -- "$stage" "$target"
    say "installed: $new in $target"
fi

if [[ $with_env == yes ]]; then
    "$target/scripts/setup_env.sh"
elif [[ ! -d $target/env ]]; then
    say "next: make its Python environment with $target/scripts/setup_env.sh"
fi
