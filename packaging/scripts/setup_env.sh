#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes the Python environment in which the JAX backend runs, from the hashed locks beside this
# script's folder. Works in an unpacked tarball and in an installed backend directory alike.

set -euo pipefail

ROOT=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
readonly ROOT
readonly MARKER=.tritonserver-jax.json
# What the environment takes on the disk, with its byte code, and some room for what changes.
readonly NEEDED_MIB=1024

usage() {
    cat <<EOF
Usage: setup_env.sh [--env DIR] [--python PATH] [--requirements FILE]... [--no-requirements]
                    [--installer uv|pip] [--check] [--force]

Makes the Python environment of the JAX backend. Every package is installed at the version and
with the hash in locks/. Run again it says "up to date", or rebuilds what is incomplete or old; when
that fails, the environment from before is put back.

  --env DIR         where to make it; default: ${ROOT}/env
                    (another place: start tritonserver with --backend-config=jax,env=DIR)
  --python PATH     the Python to use; default: the first suitable one on PATH
  --requirements FILE
                    packages that your models need besides: each pinned with == and with its
                    hashes, such as \`uv pip compile --generate-hashes
                    --constraint locks/requirements-cpu-py3XX.txt\` makes. May be given several
                    times. Remembered: without it, an environment that has to be made anew gets
                    the files that it was made with
  --no-requirements make it without any again
  --installer NAME  uv or pip; default: uv when \$UV or PATH has one, else pip
  --check           only check whether it can be made; change nothing
  --force           rebuild it even when it is up to date
  --help            show this

Both installers follow their own settings for index, proxy and certificates (pip: pip.conf, PIP_*;
uv: uv.toml, UV_*).
EOF
}

say() { printf '==> %s\n' "$*"; }
die() {
    printf 'setup_env.sh: error: %s\n' "$*" >&2
    exit 1
}
usage_error() {
    printf 'setup_env.sh: %s (--help shows the options)\n' "$*" >&2
    exit 2
}

# -- the options ----------------------------------------------------------------------------------

env_dir=$ROOT/env
python=
installer=
check=no
force=no
requirements=()
forget_requirements=no
while (($#)); do
    case $1 in
        --env | --python | --requirements | --installer)
            (($# >= 2)) && [[ -n $2 ]] || usage_error "$1: expected a value"
            case $1 in
                --env) env_dir=$2 ;;
                --python) python=$2 ;;
                --requirements) requirements+=("$2") ;;
                --installer) installer=$2 ;;
            esac
            shift 2
            ;;
        --no-requirements) forget_requirements=yes && shift ;;
        --check) check=yes && shift ;;
        --force) force=yes && shift ;;
        --help | -h) usage && exit 0 ;;
        *) usage_error "$1: no such option" ;;
    esac
done
case $installer in
    '' | uv | pip) ;;
    *) usage_error "--installer: expected uv or pip, got $installer" ;;
esac

if [[ $forget_requirements == yes ]] && ((${#requirements[@]})); then
    usage_error "--no-requirements: expected alone, got --requirements too"
fi
for index in "${!requirements[@]}"; do
    file=${requirements[index]}
    [[ -f $file && -r $file ]] || die "--requirements: expected a file that can be read, got $file"
    requirements[index]=$(realpath -- "$file")
done

if [[ -n $python ]]; then
    python=$(type -P -- "$python") || die "--python: expected an executable, found none called $python; give the path of a Python, or leave it out for the first suitable one"
fi

# What leaks in from the caller's shell must not reach the new environment.
unset PYTHONHOME PYTHONPATH PYTHONSTARTUP PIP_TARGET PIP_PREFIX PIP_USER PIP_REQUIRE_VIRTUALENV
unset UV_TARGET UV_PREFIX UV_PROJECT_ENVIRONMENT VIRTUAL_ENV
umask 022 # the server may run as another user

shopt -s nullglob
locks=("$ROOT"/locks/requirements-cpu-py3*.txt)
wheels=("$ROOT"/wheel/tritonserver_jax-*.whl)
shopt -u nullglob
((${#locks[@]})) || die "$ROOT/locks: expected requirements-cpu-py3*.txt, found none; unpack the tarball again"
((${#wheels[@]} == 1)) || die "$ROOT/wheel: expected one tritonserver_jax-*.whl, found ${#wheels[@]}; unpack the tarball again"
wheel=${wheels[0]}
[[ -f $ROOT/SHA256SUMS ]] || die "$ROOT/SHA256SUMS: expected it, found none; unpack the tarball again"
for tool in flock sha256sum; do
    command -v "$tool" >/dev/null || die "$tool: expected on PATH, found none; apt-get install util-linux coreutils"
done

# "<hash>  <name>" lines for the inputs only: the rest need not be there to make an environment.
inputs_listed=$(grep -E '^[0-9a-f]{64}  (locks|wheel)/[^/]+$' "$ROOT/SHA256SUMS" || true)
grep -qF "  wheel/${wheel##*/}" <<<"$inputs_listed" ||
    die "$ROOT/SHA256SUMS: expected a line for wheel/${wheel##*/}, found none; unpack the tarball again"
if ! failed=$(cd -- "$ROOT" && sha256sum --check --strict --quiet <<<"$inputs_listed" 2>&1); then
    die "$ROOT: a file is not the one that was released; unpack the tarball again. $failed"
fi

# -- one at a time --------------------------------------------------------------------------------

parent=$(dirname -- "$env_dir")
if [[ $check == yes ]]; then
    # The folder above it is made with it.
    parent=$(realpath -m -- "$parent")
    env_dir=${parent%/}/$(basename -- "$env_dir")
    while [[ ! -e $parent ]]; do parent=$(dirname -- "$parent"); done
else
    mkdir -p -- "$parent" 2>/dev/null || die "$parent: cannot make this folder; choose another with --env"
fi
[[ -d $parent && -w $parent ]] || die "$parent: expected to be allowed to write there; run as its owner, or choose another place with --env"
if [[ $check == no ]]; then
    parent=$(cd -- "$parent" && pwd -P)
    env_dir=${parent%/}/$(basename -- "$env_dir")
    exec 9<"$parent"
    if ! flock --nonblock 9; then
        say "waiting for another setup_env.sh in $parent"
        flock 9
    fi
fi

# The environment from before waits in `aside` until the new one is complete. What is to go is moved
# to `refuse` first: killed in the middle, no half of an environment is left in its place.
aside=${parent%/}/.${env_dir##*/}.old
refuse=${parent%/}/.${env_dir##*/}.refuse
there() { [[ -e $1 || -L $1 ]]; }
discard() {
    rm -rf -- "$refuse"
    if there "$env_dir"; then
        mv -T -- "$env_dir" "$refuse"
        rm -rf -- "$refuse"
    fi
}
put_back() {
    discard
    mv -T -- "$aside" "$env_dir"
}

[[ $check == yes ]] || rm -rf -- "$refuse"
if [[ $check == no ]] && there "$aside"; then
    if [[ -f $env_dir/$MARKER ]]; then
        rm -rf -- "$aside"
    else
        say "an earlier run was interrupted: putting the environment from before back"
        put_back
    fi
fi

# -- is it there already? -------------------------------------------------------------------------

# Prints why the environment has to be made anew; prints nothing when it fits.
reason_to_build() {
    [[ -d $env_dir ]] || { echo "there is none" && return; }
    [[ -f $env_dir/$MARKER ]] || { echo "it is incomplete" && return; }
    "$env_dir/bin/python" -I - "$ROOT" "$wheel" "$env_dir/$MARKER" "$python" "$forget_requirements" \
        ${requirements[@]+"${requirements[@]}"} 2>/dev/null <<'EOF' || echo "its Python does not start"
import hashlib, json, os, sys

root, wheel, marker_path, wanted, forget = sys.argv[1:6]
requirements = sys.argv[6:]


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


try:
    with open(marker_path, encoding="utf-8") as file:
        marker = json.load(file)
    name = "requirements-cpu-py%d%d.txt" % sys.version_info[:2]
    if marker["lock_sha256"] != sha256(os.path.join(root, "locks", name)):
        print("it was made from another lock")
    elif marker["wheel_sha256"] != sha256(wheel):
        print("it has another build of tritonserver-jax")
    elif not os.path.isfile(marker["libpython"]):
        print("its %s is gone" % marker["libpython"])
    elif marker["environment"] != os.path.dirname(marker_path):
        print("it was moved from %s" % marker["environment"])
    elif forget == "yes" and marker["requirements"]:
        print("it has packages of %s" % ", ".join(marker["requirements"]))
    elif requirements and {path: sha256(path) for path in requirements} != marker["requirements"]:
        print("it was made without %s, or they have changed" % ", ".join(requirements))
    elif any(os.path.isfile(path) and sha256(path) != digest for path, digest in marker["requirements"].items()):
        print("%s changed" % " or ".join(marker["requirements"]))
    elif wanted and os.path.realpath(wanted) != os.path.realpath(marker["python"]):
        print("it is of %s" % marker["python"])
except (OSError, ValueError, KeyError, TypeError):
    print("its %s cannot be used" % os.path.basename(marker_path))
EOF
}

reason=$(reason_to_build)
if [[ -z $reason && $force == no ]]; then
    say "up to date: $env_dir"
    exit 0
fi
reason=${reason:---force}
if [[ -e $env_dir || -L $env_dir ]]; then
    # Never remove what is not an environment: --env may have been a slip.
    if [[ ! -f $env_dir/pyvenv.cfg ]] && [[ ! -d $env_dir || -n $(ls -A -- "$env_dir") ]]; then
        die "$env_dir: exists and is no Python environment; move it away, or choose another place with --env"
    fi
fi

# -- which Python? --------------------------------------------------------------------------------

# Prints "ok|minor|executable|libpython" or "no|minor|package|reason". The candidate may be any
# Python at all, so an old one has to understand this too.
probe() {
    local need_ensurepip=$1 candidate=$2
    "$candidate" -I -c '
import os, platform, sys, sysconfig
locks, need_ensurepip = sys.argv[1], sys.argv[2]
minor = "%d.%d" % sys.version_info[:2]


def no(reason, package=""):
    print("no|%s|%s|%s" % (minor, package, reason))
    sys.exit()


if not os.path.isfile(os.path.join(locks, "requirements-cpu-py%s.txt" % minor.replace(".", ""))):
    no("Python %s: there is no lock for it" % minor)
if platform.python_implementation() != "CPython":
    no("%s: expected CPython" % platform.python_implementation())
if sysconfig.get_config_var("Py_GIL_DISABLED"):
    no("Python %s without GIL: expected a usual build" % minor)
if platform.machine() != "x86_64" or sys.maxsize < 2**32:
    no("expected a 64-bit x86_64 build, got %s" % platform.machine())
name = sysconfig.get_config_var("INSTSONAME") or ""
if ".so" not in name:
    name = "libpython%s.so.1.0" % minor
folders = [sysconfig.get_config_var("LIBDIR"), os.path.join(sys.base_prefix, "lib")]
multiarch = sysconfig.get_config_var("MULTIARCH")
if multiarch:
    folders += [os.path.join(f, multiarch) for f in folders if f]
paths = [os.path.join(f, name) for f in folders if f]
found = [p for p in paths if os.path.isfile(p)]
if not found:
    no("Python %s: its shared %s is missing" % (minor, name), "libpython%s" % minor)
try:
    import venv
    if need_ensurepip == "yes":
        import ensurepip
except ImportError as error:
    no("Python %s: cannot make an environment (%s)" % (minor, error), "python%s-venv" % minor)
base = getattr(sys, "_base_executable", None) or sys.executable
print("ok|%s|%s|%s" % (minor, base, os.path.realpath(found[0])))
' "$ROOT/locks" "$need_ensurepip" 2>/dev/null </dev/null || echo 'no|||does not start'
}

uv=
if [[ $installer != pip ]]; then
    uv=${UV:-$(type -P uv || true)}
    # A shim on PATH may exist and fail.
    if [[ -n $uv ]] && ! "$uv" --version >/dev/null 2>&1; then
        [[ -z ${UV:-} && $installer != uv ]] || die "$uv: expected a uv that runs, it failed; use --installer pip"
        uv=
    fi
    [[ -n $uv || $installer != uv ]] || die "uv: expected in \$UV or on PATH, found none; use --installer pip"
fi
[[ -n $uv ]] && installer=uv || installer=pip

candidates=()
if [[ -n $python ]]; then
    candidates=("$python")
else
    for name in python3 python3.11 python3.12 python3.13 python3.14; do
        while IFS= read -r path; do candidates+=("$path"); done < <(type -aP "$name" || true)
        for folder in /usr/bin /usr/local/bin; do
            [[ ! -x $folder/$name ]] || candidates+=("$folder/$name")
        done
    done
fi

chosen=
tried=
declare -A seen=() wanted_packages=()
for candidate in ${candidates[@]+"${candidates[@]}"}; do
    [[ -z ${seen[$candidate]:-} ]] || continue
    seen[$candidate]=yes
    answer=$(probe "$([[ $installer == pip ]] && echo yes || echo no)" "$candidate")
    # Not a tab: `read` would take two of them, with nothing between, for one.
    IFS='|' read -r verdict minor third fourth <<<"$answer"
    if [[ $verdict == ok ]]; then
        chosen=$candidate base_python=$third libpython=$fourth
        break
    fi
    tried+="
    $candidate: ${fourth:-does not start}"
    [[ -z $third ]] || wanted_packages[$third]=yes
done
if [[ -z $chosen ]]; then
    supported=
    for lock in "${locks[@]}"; do
        supported+=" 3.$(sed -E 's/.*-py3([0-9]+)\.txt$/\1/' <<<"$lock")"
    done
    packages=${!wanted_packages[*]}
    die "no suitable Python: expected CPython of${supported}, with its shared library and venv.
  Tried:${tried:-
    nothing: there is no python3 on PATH}
  What may help: apt-get install ${packages:-python3.11 libpython3.11 python3.11-venv}
  (Ubuntu 24.04: python3.12 libpython3.12 python3.12-venv), or name another one with --python"
fi
lock=$ROOT/locks/requirements-cpu-py${minor/./}.txt

# The files that it was made with, unless others are named now: the new Python reads what the old
# one left, since the old one may be why it is made anew.
if ((${#requirements[@]} == 0)) && [[ $forget_requirements == no && -f $env_dir/$MARKER ]]; then
    mapfile -d '' -t requirements < <("$base_python" -I -c '
import json, sys
with open(sys.argv[1], encoding="utf-8") as file:
    sys.stdout.write("".join(path + "\0" for path in json.load(file).get("requirements", {})))
' "$env_dir/$MARKER" 2>/dev/null || true)
    for file in ${requirements[@]+"${requirements[@]}"}; do
        [[ -f $file && -r $file ]] || die "$env_dir: was made with --requirements $file, which is gone; name the file again, or use --no-requirements"
    done
fi

# Before anything is touched: each requirement has to be pinned and hashed, and what the lock pins
# is what the backend was tested with, so nothing may replace it.
if ((${#requirements[@]})); then
    "$base_python" -I - "$lock" "$minor" "${requirements[@]}" <<'EOF' || exit 1
import re, sys


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, ValueError) as error:
        sys.exit("setup_env.sh: error: %s: expected a text file of requirements: %s" % (path, error))


def wrong(path):
    """What keeps a file from being installed with hashes, or nothing."""
    # A comment ends the line, and a backslash before the end of it joins the next one.
    text = re.sub(r"(^|[ \t])#.*", r"\1", read(path), flags=re.MULTILINE)
    lines = [line.strip() for line in re.sub(r"\\[ \t]*\n", " ", text).splitlines()]
    lines = [line for line in lines if line]
    for line in lines:
        if re.match(r"(-r|-e|--requirement|--editable)\b", line):
            return "expected all requirements in this file, got %s" % line
    wanted = [line for line in lines if not line.startswith("-")]
    if not wanted:
        return "expected requirements, found none"
    for line in wanted:
        what = re.split(r"\s*(?:;|--hash)", line, maxsplit=1)[0]
        # "name @ address" names one file, as == does.
        if not re.match(r"[A-Za-z0-9._-]+\s*(\[[^]]*\])?\s*(={2,3}\s*[^\s*]+$|@\s*\S+$)", what):
            return "expected each package pinned with ==, got %s" % what
        if not re.search(r"\s--hash[= ]\s*\w+:[0-9a-f]+", line):
            return "expected a --hash for each package, found none for %s" % what
    return ""


def pins(path):
    text = read(path)
    found = re.findall(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^\s;\\]+)", text, flags=re.MULTILINE)
    versions = {}
    for name, version in found:  # several, where they depend on the Python
        versions.setdefault(re.sub(r"[-_.]+", "-", name).lower(), []).append(version)
    return versions


lock, minor, *files = sys.argv[1:]
locked = pins(lock)
for path in files:
    reason = wrong(path)
    if reason:
        sys.exit(
            "setup_env.sh: error: %s: %s; write the names of the packages into a file, here "
            "requirements.in, and let uv write the requirements:\n"
            "  uv pip compile requirements.in --generate-hashes --constraint %s "
            "--python-version %s --output-file requirements.txt\n"
            "  Nothing was changed." % (path, reason, lock, minor)
        )
    for name, versions in pins(path).items():
        if name in locked and not set(locked[name]) & set(versions):
            sys.exit(
                "setup_env.sh: error: %s: %s==%s, but the backend was tested with %s; compile it "
                "with --constraint %s" % (path, name, versions[0], locked[name][0], lock)
            )
EOF
fi

free_mib=$(df -Pk -- "$parent" | awk 'NR == 2 { printf "%d", $4 / 1024 }')
((free_mib >= NEEDED_MIB)) || die "$parent: expected $NEEDED_MIB MiB of free space for the environment, found $free_mib MiB; make room, or choose another place with --env"

if [[ $check == yes ]]; then
    say "can be made: $env_dir ($reason) with Python $minor: $base_python, by $installer"
    exit 0
fi

# -- make it --------------------------------------------------------------------------------------

# Not from here: uv would follow the settings of a pyproject.toml in the folder it is started in.
uv_pip() { (cd / && UV_PYTHON_DOWNLOADS=never exec "$uv" pip "$@"); }

say "making $env_dir ($reason) with Python $minor: $base_python, by $installer"

step="start"
begun=no
finish() {
    local status=$?
    if [[ $step != finished ]]; then
        local left
        left=$(df -Ph -- "$parent" | awk 'NR == 2 { print $4 }') || left=unknown
        local now="was removed"
        if there "$aside"; then
            put_back
            now="is again as it was before"
        elif [[ $begun == yes ]]; then
            discard
        fi
        {
            printf 'setup_env.sh: error: %s failed; %s %s (free space there: %s).\n' \
                "$step" "$env_dir" "$now" "$left"
            case $step in
                installing*) printf '%s\n' "  What $installer said is above. No network or another index: see --help." \
                    "  Not the expected hash: the index has another file than the one locked; do not use it." ;;
                checking*) printf '%s\n' "  What $installer said is above: add what is missing to the requirements." ;;
            esac
        } >&2
        ((status != 0)) || status=1
    fi
    exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# In place and not beside it: a virtual environment knows its own path. The marker comes last.
step="making the environment"
if [[ -f $env_dir/$MARKER ]]; then
    mv -T -- "$env_dir" "$aside"
else
    discard
fi
begun=yes
mkdir -- "$env_dir"
: >"$env_dir/pyvenv.cfg" # from its first moment it can be told for an environment
if [[ $installer == uv ]]; then
    "$base_python" -I -m venv --without-pip -- "$env_dir"
else
    "$base_python" -I -m venv -- "$env_dir"
fi
env_python=$env_dir/bin/python

step="installing the packages of locks/${lock##*/}"
say "$step"
if [[ $installer == uv ]]; then
    uv_pip install --python "$env_python" --no-deps --require-hashes \
        --only-binary :all: --compile-bytecode --requirements "$lock"
else
    "$env_python" -I -m pip install --disable-pip-version-check --no-input --no-deps \
        --require-hashes --only-binary=:all: --requirement "$lock"
fi

for file in ${requirements[@]+"${requirements[@]}"}; do
    step="installing the packages of $file"
    say "$step"
    if [[ $installer == uv ]]; then
        uv_pip install --python "$env_python" --no-deps --require-hashes \
            --only-binary :all: --compile-bytecode --requirements "$file"
    else
        "$env_python" -I -m pip install --disable-pip-version-check --no-input --no-deps \
            --require-hashes --only-binary=:all: --requirement "$file"
    fi
done

step="installing ${wheel##*/}"
say "$step"
if [[ $installer == uv ]]; then
    # No cache: it goes by path and time, and a build may be replaced by another with the same.
    uv_pip install --python "$env_python" --no-deps --no-index \
        --no-cache --compile-bytecode "$wheel"
else
    "$env_python" -I -m pip install --disable-pip-version-check --no-input --no-deps --no-index "$wheel"
fi

if ((${#requirements[@]})); then
    step="checking that the packages go together"
    say "$step"
    if [[ $installer == uv ]]; then
        uv_pip check --python "$env_python"
    else
        "$env_python" -I -m pip check --disable-pip-version-check
    fi
fi

step="importing what was installed"
say "$step"
JAX_PLATFORMS=cpu "$env_python" -I -c '
import flax, jax, jaxlib, numpy, tritonserver_jax
modules = [tritonserver_jax, jax, jaxlib, flax, numpy]
print("    " + ", ".join("%s %s" % (m.__name__, m.__version__) for m in modules))
'

step="writing the marker"
"$env_python" -I - "$env_dir" "$lock" "$wheel" "$base_python" "$libpython" "$MARKER" \
    ${requirements[@]+"${requirements[@]}"} <<'EOF'
import hashlib, json, os, sys
from importlib.metadata import version

env, lock, wheel, python, libpython, marker = sys.argv[1:7]
requirements = sys.argv[7:]


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


path = os.path.join(env, marker)
with open(path + ".new", "w", encoding="utf-8") as file:
    json.dump(
        {
            "project_version": version("tritonserver-jax"),
            "environment": env,
            "python": python,
            "python_version": "%d.%d.%d" % sys.version_info[:3],
            "libpython": libpython,
            "lock": os.path.basename(lock),
            "lock_sha256": sha256(lock),
            "wheel_sha256": sha256(wheel),
            "requirements": {path: sha256(path) for path in requirements},
        },
        file,
        indent=2,
    )
    file.write("\n")
os.replace(path + ".new", path)
EOF
step=finished
rm -rf -- "$aside"
say "done: $env_dir"
