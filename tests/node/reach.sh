# What a node serves of its containers: logs, commands, attaching, ports; who may; and nothing left behind, however it ends.
# shellcheck shell=bash disable=SC2034 source=tests/node/lib.sh
STANDALONE=1
. "$(dirname "$0")/lib.sh"

cp "$WORK/server/node.crt" "$WORK/server/node.key" "$WORK"
NODE_FLAGS=(--tls-cert-file "$WORK/node.crt" --tls-private-key-file "$WORK/node.key")
real_node_up "the node starts"
# The newest node's own word: the Node object may still have the port of one before.
port_of_node() { NODE_PORT=$(sed -n 's/.* listening address=.* port=//p' "$WORK/node.log" | tail -n 1); [ -n "$NODE_PORT" ]; }
listening() { [ "$(grep -c ' listening address=' "$WORK/node.log")" = "$1" ] && port_of_node; }
within 20 listening 1
says_where() { [ "$(kube GET "/api/v1/nodes/$NODE_NAME" | jq -r '"\([.status.addresses[].address] | join(" ")):\(.status.daemonEndpoints.kubeletEndpoint.Port)"')" = "127.0.0.1 $NODE_NAME:$NODE_PORT" ]; }
t "it says where it serves" within 20 says_where

# at [CURL-ARGUMENT...] PATH: as the admin.
at() { curl -sk --max-time 20 --cert "$WORK/server/admin.crt" --key "$WORK/server/admin.key" "${@:1:$#-1}" "https://127.0.0.1:$NODE_PORT${!#}"; }
BASE=127.0.0.1:$NODE_PORT:$WORK/server/admin.crt:$WORK/server/admin.key
# channels WHAT PATH [FLAG...]: a client over websockets.
channels() { timeout 150 python3 "$ROOT/tests/node/channels.py" "$BASE" "$@"; }
# run POD QUERY [FLAG...]: a command's output, then how it ended.
run() { channels command "/exec/default/$1/main?output=1&error=1&$2" "${@:3}" 2>&1; }
words() { local w q=''; for w in "$@"; do q+="&command=$(jq -rn --arg w "$w" '$w | @uri')"; done; echo "${q#&}"; }

pod main '.spec.terminationGracePeriodSeconds = 0'
pod talks '.spec.restartPolicy = "Never" | run("for i in 1 2 3 4 5; do echo line $i; done; echo oops >&2; printf end")'
pod waits 'main(.image = "localhost/none/such:1" | .imagePullPolicy = "Never")'
pod crash 'run("echo before; exit 1")'
pod keyboard '.spec.restartPolicy = "Never" | main(.stdin = true | .stdinOnce = true) | run("while read l; do echo got $l; done; echo over >&2; exit 4")'
pod stays 'main(.stdin = true) | run("while read l; do echo got $l; done; echo over")'
pod terminal '.spec.restartPolicy = "Never" | main(.stdin = true | .tty = true | .command = ["sh"])'
pod echo 'run("nc -ll -p 7 -e cat")'
comes "a Pod becomes Ready" main "$READY"

# ---- who may ----

is "without a certificate: 401" 401 "$(curl -sk -o /dev/null -w '%{http_code}' "https://127.0.0.1:$NODE_PORT/healthz")"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /O=system:masters/CN=admin -keyout "$WORK/other.key" -out "$WORK/other.crt" 2>/dev/null
is "with one of another authority: 401" 401 "$(curl -sk -o /dev/null -w '%{http_code}' --cert "$WORK/other.crt" --key "$WORK/other.key" "https://127.0.0.1:$NODE_PORT/healthz")"
is "of one who may not: 403" 403 "$(curl -sk -o /dev/null -w '%{http_code}' --cert "$WORK/server/node.crt" --key "$WORK/server/node.key" "https://127.0.0.1:$NODE_PORT/healthz")"
is "of one who may: 200" "ok" "$(at /healthz)"
is "other paths are not there" 404 "$(at -o /dev/null -w '%{http_code}' /metrics)"
is "nor other methods" 405 "$(at -X POST -o /dev/null -w '%{http_code}' /healthz)"
is "a command wants an upgrade" "400 Upgrade request required" "$(at -w ' %{http_code}' "/exec/default/main/main?output=1&command=ls" | sed 's/\(.*\) \(400\)$/\2 \1/')"

# ---- its certificate is another one ----

serial() { openssl x509 -noout -serial "$@"; }
shown() { openssl s_client -connect "127.0.0.1:$NODE_PORT" </dev/null 2>/dev/null | serial; }
cp "$WORK/other.crt" "$WORK/node.crt"
is "half of a new pair is not taken" "$(serial -in "$WORK/server/node.crt")" "$(shown)"
cp "$WORK/other.key" "$WORK/node.key"
is "a new certificate is shown without a restart" "$(serial -in "$WORK/other.crt")" "$(shown)"
is "and clients come in as before" "ok" "$(at /healthz)"
cp "$WORK/server/node.crt" "$WORK/server/node.key" "$WORK"
is "so is the old one again" "$(serial -in "$WORK/server/node.crt")" "$(shown)"

# ---- logs ----

comes "a Pod that spoke has ended" talks '.status.phase == "Succeeded"'
LOG=/containerLogs/default/talks/main
is "logs of both streams, and the last line that has no end" "line 1 line 2 line 3 line 4 line 5 end" "$(at "$LOG" | tr '\n' ' ' | sed 's/oops//; s/ *$//; s/  */ /g')"
is "of one stream" oops "$(at "$LOG?stream=Stderr")"
is "so many bytes" "line 1 l" "$(at "$LOG?limitBytes=8" | paste -sd' ')"
like "with their times" '^[0-9]{4}-[0-9-]+T[0-9:.]+[^ ]* line 1$' "$(at "$LOG?timestamps=true")"
is "none since now" "" "$(at "$LOG?sinceTime=$(date -u -d '+1 hour' +%FT%TZ)")"
is "all since long ago" "line 1" "$(at "$LOG?sinceSeconds=3600" | head -n 1)"
is "a wrong option: 422" 422 "$(at -o /dev/null -w '%{http_code}' "$LOG?tailLines=-1")"
is "no such Pod" 'pod "none" does not exist' "$(at /containerLogs/default/none/main)"
is "no such container" 'container "other" not found in pod "talks"' "$(at /containerLogs/default/talks/other)"
comes "a Pod waits for its image" waits '.status.containerStatuses[0].state.waiting.reason == "ErrImageNeverPull"'
is "it has no output yet" 'container "main" in pod "waits" is waiting to start: ErrImageNeverPull' "$(at /containerLogs/default/waits/main)"
is "nor a run before" 'previous terminated container "main" in pod "main" not found' "$(at '/containerLogs/default/main/main?previous=true')"
comes "a Pod crashes" crash '.status.containerStatuses[0].lastState.terminated != null'
is "what its run before wrote is there" before "$(at '/containerLogs/default/crash/main?previous=true')"
pod follow '.spec.restartPolicy = "Never" | run("while [ ! -e /tmp/go ]; do sleep 0.1; done; echo a; sleep 1; echo b")'
comes "a Pod that will speak" follow "$READY"
at '/containerLogs/default/follow/main?follow=true' >"$WORK/followed" &
FOLLOWER=$!
sleep 0.5
inside follow touch /tmp/go
within 20 test -s "$WORK/followed"
is "its output comes as it is written" a "$(head -n 1 "$WORK/followed")"
wait $FOLLOWER
is "following ends with the container" 0 $?
is "and nothing is lost" "a b" "$(paste -sd' ' "$WORK/followed")"
is "only the last lines, when that is asked for" b "$(at '/containerLogs/default/follow/main?tailLines=1')"
pod much '.spec.restartPolicy = "Never" | run("i=0; while [ $i -lt 200 ]; do head -c 49152 /dev/zero | tr \"\\0\" x; echo; i=$((i+1)); done; sleep 1; echo last; sleep 100000")'
comes "a Pod that writes much" much "$READY"
t "its log is bounded" within 60 eval 'at "/containerLogs/default/much/main?tailLines=1" | grep -qx last'
SIZE=$(at /containerLogs/default/much/main | wc -c)
t "by the engine's limit" test "$SIZE" -le 10485760

# ---- commands ----

is "a command's output and how it ended" 'out
1000 {"metadata":{},"status":"Success"}' "$(run main "$(words echo out)")"
has "its exit code" '"reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"3"}]}}' "$(run main "$(words sh -c 'exit 3')")"
has "that of a signal" '"message":"137"' "$(run main "$(words sh -c 'kill -9 $$')")"
has "both streams" err "$(channels command "/exec/default/main/main?output=1&error=1&$(words sh -c 'echo err >&2')" 2>&1 >/dev/null)"
has "a command that is not there" 'no such file or directory' "$(run main "$(words /no/such)")"
has "ends with 127" '"message":"127"' "$(run main "$(words /no/such)" 2>&1)"
is "the oldest protocol says nothing of success" 1000 "$(channels command "/exec/default/main/main?output=1&$(words true)" --protocol channel.k8s.io | tr -d ' ')"
has "and a text of failure" "exit status 2" "$(channels command "/exec/default/main/main?output=1&$(words sh -c 'exit 2')" --protocol channel.k8s.io)"
is "a container that is not there" '500 container not found ("other")' "$(channels command "/exec/default/main/other?output=1&command=ls" 2>&1)"
is "one that has ended" '500 container not found ("main")' "$(channels command "/exec/default/talks/main?output=1&command=ls" 2>&1)"
is "no stream at all" '400 you must specify at least 1 of stdin, stdout, stderr' "$(channels command "/exec/default/main/main?command=ls" 2>&1)"
is "an unknown protocol" 403 "$(channels command "/exec/default/main/main?output=1&command=ls" --protocol chat 2>&1 | cut -d' ' -f1)"
MANY=50000000
[ -z "$SLOW" ] || MANY=5000000
head -c $MANY /dev/urandom >"$WORK/many"
is "many bytes go in and out unchanged" "1000 {\"metadata\":{},\"status\":\"Success\"}" \
    "$(channels command "/exec/default/main/main?input=1&output=1&$(words cat)" --input "$WORK/many" --close --out "$WORK/same")"
t "to the last one" cmp "$WORK/many" "$WORK/same"
has "stdin ends when the client says so" "$MANY" "$(run main "input=1&$(words wc -c)" --input "$WORK/many" --close)"
SIZE='i=0; until [ "$(stty size)" = "$1" ] || [ $i = 100 ]; do sleep 0.1; i=$((i + 1)); done; stty size'
has "a terminal has the size it is given" "24 80" "$(run main "tty=1&input=1&$(words sh -c "$SIZE" - '24 80')" --resize 80x24)"
has "and the one it is given then" "40 100" "$(run main "tty=1&input=1&$(words sh -c "$SIZE" - '40 100')" --resize 80x24,100x40)"

# ---- the client goes ----

sleepers() { inside main ps | grep -c 'sleep 1234'; }
no_sleepers() { [ "$(sleepers)" = 0 ]; }
run main "$(words sh -c 'echo begun; sleep 1234; echo never')" --go-after 1 >/dev/null
t "what a client began ends with it, and what that began" within 20 no_sleepers
python3 "$ROOT/tests/node/channels.py" "$BASE" command "/exec/default/main/main?output=1&input=1&tty=1&$(words sh -c 'echo begun; sleep 1234; echo never')" >"$WORK/killed" 2>&1 &
CLIENT=$!
t "a command runs in a terminal" within 20 eval '[ "$(sleepers)" -ge 1 ]'
kill -KILL $CLIENT
t "it ends with a client that is killed" within 20 no_sleepers

# ---- attaching ----

comes "a container that reads" keyboard "$READY"
is "what is typed reaches it, and its output comes back, to its end" "got one got two over 1000 {\"metadata\":{},\"status\":\"Success\"}" \
    "$(channels command "/attach/default/keyboard/main?input=1&output=1&error=1" --lines 'one\n' 'two\n' --close 2>&1 | paste -sd' ')"
comes "it ended by that" keyboard '.status.containerStatuses[0].state.terminated.exitCode == 4'
comes "one that may be attached to again and again" stays "$READY"
for word in one two; do
    is "takes what a client says: $word" "got $word" "$(channels command "/attach/default/stays/main?input=1&output=1" --lines "$word\n" --go-after 8 2>&1 | head -n 1)"
done
is "its input did not end with them" "got one got two" "$(at /containerLogs/default/stays/main | paste -sd' ')"
has "while that of a command in it ends with its client" "seen over" "$(run stays "input=1&$(words sh -c 'cat; echo over')" --lines 'seen\n' --close | paste -sd' ')"
comes "a terminal" terminal "$READY"
has "is attached to, with its size" "30 90" "$(channels command "/attach/default/terminal/main?input=1&output=1&tty=1" --resize 90x30 --lines 'stty size\n' 'exit 0\n' 2>&1 | tr -d '\r')"
is "nobody attaches to what has ended" '500 container not found ("main")' "$(channels command "/attach/default/talks/main?output=1" 2>&1)"

# ---- ports ----

comes "a server in a Pod" echo "$READY"
is "what is sent to its port comes back" same "$(channels ports "/portForward/default/echo?port=7" --protocol v4.channel.k8s.io)"
is "on several connections at once" "same same same same" \
    "$(channels ports "/portForward/default/echo?port=7,7&port=7&port=7" --protocol v4.channel.k8s.io --count 4 | paste -sd' ')"
like "a port where nobody listens" 'error forwarding port 81 to pod echo, uid [0-9a-f-]+: failed to connect to localhost:81: Connection refused' \
    "$(channels ports "/portForward/default/echo?port=81" --protocol v4.channel.k8s.io)"
is "no port at all" 400 "$(channels ports "/portForward/default/echo" --protocol v4.channel.k8s.io 2>&1 | cut -d' ' -f1)"
is "no such Pod" '404 pod "none" does not exist' "$(channels ports "/portForward/default/none?port=7" --protocol v4.channel.k8s.io 2>&1)"

# ---- all the way, by kubectl ----

if command -v kubectl >/dev/null; then
    # k WEBSOCKETS ARGUMENT...
    k() { KUBECTL_REMOTE_COMMAND_WEBSOCKETS=$1 KUBECTL_PORT_FORWARD_WEBSOCKETS=$1 timeout 60 kubectl --kubeconfig "$WORK/server/admin.kubeconfig" "${@:2}"; }
    head -c 1000000 /dev/urandom >"$WORK/some"
    is "kubectl logs" b "$(k true logs follow --tail=1)"
    for way in true false; do
        echo "# websockets: $way"
        k $way exec main -- sh -c 'exit 7' 2>/dev/null
        is "kubectl exec ends with the command's exit code" 7 $?
        k $way exec -i main -- cat <"$WORK/some" >"$WORK/same"
        t "its bytes are the command's" cmp "$WORK/some" "$WORK/same"
        LOCAL=$((20000 + RANDOM % 10000))
        k $way port-forward pod/echo $LOCAL:7 >"$WORK/forward" 2>&1 &
        FORWARD=$!
        within 30 grep -q Forwarding "$WORK/forward"
        busybox nc -w 5 127.0.0.1 $LOCAL <"$WORK/some" >"$WORK/same"
        t "so are those of kubectl port-forward" cmp "$WORK/some" "$WORK/same"
        kill $FORWARD
        wait $FORWARD 2>/dev/null
    done
else
    skip "kubectl" "it is not here"
fi

# ---- the node goes ----

channels command "/exec/default/main/main?output=1&$(words sh -c 'echo begun; sleep 1234')" >"$WORK/ended" 2>&1 &
CLIENT=$!
t "a command runs" within 20 eval '[ "$(sleepers)" -ge 1 ]'
node_kill TERM
is "the node ends though it does" 0 $?
wait $CLIENT
real_node_up "it starts again"
t "the command went with it" within 20 no_sleepers
within 20 listening 2
pod_is_known() { [ "$(at -o /dev/null -w '%{http_code}' /containerLogs/default/main/main)" = 200 ]; }
t "and knows its Pods" within 20 pod_is_known
BASE=127.0.0.1:$NODE_PORT:$WORK/server/admin.crt:$WORK/server/admin.key
channels command "/exec/default/main/main?output=1&$(words sh -c 'echo begun; sleep 1234')" >"$WORK/ended" 2>&1 &
CLIENT=$!
t "a command runs again" within 20 eval '[ "$(sleepers)" -ge 1 ]'
node_kill 9
wait $CLIENT
real_node_up "it starts after kill -9"
t "nor does one outlive a node that was killed" within 20 no_sleepers
for name in main talks waits crash keyboard stays terminal echo follow much; do pod_delete $name '?gracePeriodSeconds=0'; done
nothing_left "nothing is left of all that"
