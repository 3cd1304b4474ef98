#!/bin/sh
# A worker in shell: claims a task, runs a program for it, hands in the result.
#
#   WF_GATEWAY=https://host:8443 WF_WORKER_TOKEN=… ./worker.sh NAME PROGRAM
#
# NAME is the worker's name. PROGRAM gets the action as its argument and the input as JSON on stdin;
# it writes the output as JSON, and its exit code fails the task when it is not 0. A token that the
# gateway does not know yet is enrolled under WF_API_KEY for the capabilities in CAPABILITIES (words).
#
# It keeps the rules of docs/worker-protocol.md: one task at a time, a heartbeat beside it, calls
# repeated with growing pauses while the gateway is away, SIGTERM finishes the task in hand.
# Numbers: jq 1.7 and newer keeps their digits.
set -u

name=$1 program=$2
: "${WF_GATEWAY:?}" "${WF_WORKER_TOKEN:?}"
lease=${LEASE:-60}
wait=${WAIT:-30}
work=$(mktemp -d) || exit 1
beat='' ending=no

# The token goes to curl on stdin, so that no list of processes shows it.
call() { # call METHOD PATH TOKEN BODY: answer in $work/answer; the exit code: 0 answered, 1 refused
    pause=1
    while :; do
        status=$(printf 'header = "Authorization: Bearer %s"\n' "$3" |
            curl --silent --config - --request "$1" --header 'Content-Type: application/json' \
                --data-binary "@$4" --output "$work/answer" --write-out '%{http_code}' \
                --connect-timeout 10 --max-time $((wait + 60)) "$WF_GATEWAY$2") || status=000
        case $status in
        200) return 0 ;;
        000 | 408 | 429 | 5??) # not now
            [ "$ending" = yes ] && [ "${5-}" != insist ] && return 1
            sleep "$pause"
            pause=$((pause < 30 ? pause * 2 : 30))
            ;;
        *)
            echo "$2: $status $(jq --raw-output '.detail // empty' "$work/answer" 2>&1)" >&2
            return 1
            ;;
        esac
    done
}

body() { # body JQ_FILTER ARGUMENTS…: a file with a body that names the worker
    filter=$1
    shift
    jq --null-input --compact-output --arg worker "$name" "$@" \
        "{worker_id: \$worker} + $filter" >"$work/body"
}

keep_lease() { # keep_lease TASK LEASE_TOKEN PID: until the lease is lost; then the program ends
    while sleep $((lease / 3)); do
        jq --null-input --arg worker "$name" --argjson token "$2" --argjson lease "$lease" \
            '{worker_id: $worker, lease_token: $token, extend_seconds: $lease}' >"$work/beat"
        printf 'header = "Authorization: Bearer %s"\n' "$WF_WORKER_TOKEN" |
            curl --silent --config - --header 'Content-Type: application/json' --max-time 10 \
                --data-binary "@$work/beat" --output "$work/beaten" \
                "$WF_GATEWAY/v1/workers/tasks/$1/heartbeat" || continue
        case $(jq --raw-output '.command // empty' "$work/beaten") in
        CANCEL) kill "$3" 2>/dev/null && return ;;
        esac
    done
}

do_task() { # the task stands in $work/task
    id=$(jq .task_id "$work/task") token=$(jq .lease_token "$work/task")
    action=$(jq --raw-output .action "$work/task")
    jq .input "$work/task" >"$work/input"
    "$program" "$action" <"$work/input" >"$work/output" 2>"$work/errors" &
    pid=$!
    keep_lease "$id" "$token" "$pid" &
    beat=$!
    # A signal ends `wait`, not the program.
    while :; do
        wait "$pid"
        code=$?
        kill -0 "$pid" 2>/dev/null || break
    done
    kill "$beat" 2>/dev/null
    if [ "$code" -eq 0 ] && jq --slurp 'if length > 0 then .[0] else null end' "$work/output" \
        >"$work/result" 2>/dev/null; then
        body '{lease_token: $token, result_code: 0, output: $output[0]}' \
            --argjson token "$token" --slurpfile output "$work/result"
        call POST "/v1/workers/tasks/$id/submit" "$WF_WORKER_TOKEN" "$work/body" insist
    else
        body '{lease_token: $token, result_code: -$code, message: $message}' \
            --argjson token "$token" --argjson code $((code > 0 ? code : 1)) \
            --arg message "$(tail -n 1 "$work/errors")"
        call POST "/v1/workers/tasks/$id/fail" "$WF_WORKER_TOKEN" "$work/body" insist
    fi && echo "$(jq --raw-output .path "$work/task") -> $(jq --raw-output .reason "$work/answer")"
}

trap 'ending=yes' TERM INT
trap 'kill $beat 2>/dev/null; rm -rf "$work"' EXIT

if [ -n "${WF_API_KEY-}" ]; then
    body '{worker_token: env.WF_WORKER_TOKEN, capabilities: ($words | split(" "))}' \
        --arg words "${CAPABILITIES:?}"
    call POST /v1/workers/enroll "$WF_API_KEY" "$work/body" || exit 1
fi
while [ "$ending" = no ]; do
    body '{lease_seconds: $lease, wait_seconds: $wait}' \
        --argjson lease "$lease" --argjson wait "$wait"
    call POST /v1/workers/tasks/request "$WF_WORKER_TOKEN" "$work/body" || exit 1
    command=$(jq --raw-output .command "$work/answer")
    [ "$command" = NONE ] || ending=yes
    jq --exit-status '.tasks[0]' "$work/answer" >"$work/task" && do_task
done
exit 0
