#!/bin/sh
# Prepares an empty database: the runtime, the examples, and the key that workers enrol with. It may
# run again at any time; what is there stays.
#
# Usage: setup.sh KEY_FILE   with WF_URL set, in the folder that holds `examples`.
set -eu
key_file=$1

wf db install
wf deploy examples/order_fulfilment/order_fulfilment.wf
wf deploy examples/order_delivery/order_delivery.wf
wf deploy examples/sample_preparation/sample_preparation.wf

# A key is shown once. The file appears when it is whole, so that a start that was broken off makes
# another one, and nobody reads half of it.
if [ ! -s "$key_file" ]; then
    umask 077
    wf key create workers --role enroll --capability "*" > "$key_file.new"
    mv "$key_file.new" "$key_file"
fi
