#!/bin/sh
# Puts the test bed's workflows into a database with nothing else in it, and runs each of them there.
#
#   deploy_test_bed.sh [--seed-dir DIR] [--url URL]
#
# DIR holds the seeds and the folder instance_context_examples; it is this script's own by default.
# URL is WF_URL by default. It needs the command wf, or the one that WF names. Exit code 1: a file is
# missing, which is named, or a run did not pass.
set -eu

seed_dir=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
url=${WF_URL:-}
while [ $# -gt 0 ]; do
    case "$1" in
        --seed-dir) seed_dir=${2:?--seed-dir takes a folder}; shift 2 ;;
        --url) url=${2:?--url takes a URL}; shift 2 ;;
        *) echo "usage: deploy_test_bed.sh [--seed-dir DIR] [--url URL]" >&2; exit 2 ;;
    esac
done

for file in \
    workflow_seed_examples.sql \
    workflow_tree_seed_example.sql \
    wf_two_group_test_seed.sql \
    wf_mc_two_group_test_seed.sql \
    instance_context_examples/flat_demo.json \
    instance_context_examples/tree_demo.json \
    instance_context_examples/two_groups.json \
    instance_context_examples/mc_two_groups.json
do
    if [ ! -f "$seed_dir/$file" ]; then
        echo "error: $seed_dir lacks $file" >&2
        exit 1
    fi
done

exec "${WF:-wf}" db test-bed --seed-dir "$seed_dir" ${url:+--url "$url"}
