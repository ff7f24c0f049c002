#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes a Python environment fit for an image: smaller, and the same bytes in every build.

set -euo pipefail

usage() {
    cat <<EOF
Usage: finish_environment.sh DIR EPOCH

  DIR    the backend's folder, with its env in it
  EPOCH  the time of every file, in seconds since 1970

Takes away what nothing imports and what only a debugger reads. The files that remain do what they
did. Needs strip and readelf.
EOF
}
if (($# != 2)) || [[ ! -d $1/env || ! $2 =~ ^[0-9]+$ ]]; then
    usage >&2
    exit 2
fi
readonly folder=$1 epoch=$2

# The packages' own tests: of the large ones nothing else imports them.
for package in numpy scipy; do
    find "$folder"/env/lib/python3.*/site-packages/"$package" -type d -name tests -prune -exec rm -rf -- {} +
done

# Debugging sections; the symbols stay, so that a crash can still be read. Libraries without such
# sections are left alone: some of them were edited after linking, and strip may break those.
while IFS= read -r -d '' library; do
    sections=$(readelf --section-headers --wide -- "$library")
    if [[ $sections == *.debug_info* ]]; then
        strip --strip-debug -- "$library"
    fi
done < <(find "$folder/env" -type f -name '*.so' -print0)

# The installer's notes on when it took our wheel from where.
find "$folder/env" -type f -name uv_cache.json -delete
find "$folder"/env/lib/python3.*/site-packages/tritonserver_jax-*.dist-info -name RECORD \
    -exec sed -i '/uv_cache\.json/d' {} +

find "$folder" -exec touch --no-dereference --date="@$epoch" {} +
