# Into Pods with other people's clients, through a server without a cluster and a node that runs them: kubectl of two versions over WebSockets
# and over SPDY (logs, exec with and without a terminal, attach, cp, port-forward), and the Python client.
# shellcheck shell=bash disable=SC2034 source=tests/node/lib.sh
STANDALONE=1
. "$(dirname "$0")/lib.sh"

# The newest first; where none was built there is nothing to test.
mapfile -t KUBECTLS < <("$ROOT/tests/compat/clients" kubectls 2>/dev/null)
[ ${#KUBECTLS[@]} != 0 ] || { skip "$(basename "$0")" "no kubectl here (hack/cluster/cluster build)" && exit 0; }
PYTHON=$("$ROOT/tests/compat/clients" python 2>/dev/null)

real_node_up "the node starts" --port 0
pod main '.spec.terminationGracePeriodSeconds = 0'
pod talks '.spec.restartPolicy = "Never" | run("for i in 1 2 3 4 5; do echo line $i; done; echo oops >&2; while [ ! -e /tmp/go ]; do sleep 0.1; done; echo end")'
pod keyboard 'main(.stdin = true | .tty = false) | run("while read l; do echo got $l; done")'
pod ports 'run("nc -ll -p 7 -e cat & httpd -f -p 80 -h /www; wait") | main(.volumeMounts = [{name: "www", mountPath: "/www"}]) | .spec.volumes = [{name: "www", emptyDir: {}}]'
for name in main talks keyboard ports; do comes "the Pod $name is Ready" $name "$READY"; done

export KUBECONFIG=$WORK/server/admin.kubeconfig HOME=$WORK
# kc ARGUMENT...: kubectl, which never waits for ever.
kc() { timeout 60 "$KUBECTL" --context agent-sandbox "$@" </dev/null 2>&1; }
# fed ARGUMENT...: the same with a standard input.
fed() { timeout 60 "$KUBECTL" --context agent-sandbox "$@"; }
# at_terminal TEXT ARGUMENT...: kubectl has a terminal, where TEXT is typed.
at_terminal() {
    timeout 60 script -qec "stty rows 30 cols 90; $KUBECTL --context agent-sandbox ${*:2}" /dev/null < <(sleep 1 && printf '%b' "$1" && sleep 20) | tr -d '\r'
}

head -c 3000000 /dev/urandom >"$WORK/random"
mkdir -p "$WORK/tree/below" && echo a >"$WORK/tree/a" && cp "$WORK/random" "$WORK/tree/below/b"

logs() {
    is "logs" "line 1 line 2 line 3 line 4 line 5 oops" "$(kc logs talks | sort | paste -sd' ')"
    is "the last ones" "2" "$(kc logs talks --tail=2 | wc -l)"
    like "with times" '^[0-9]{4}-[0-9-]+T[0-9:.]+[^ ]* line 1$' "$(kc logs talks --timestamps)"
    has "of a container that is not there" 'container nope is not valid for pod talks' "$(kc logs talks -c nope)"
    has "of a run before" 'previous terminated container "main" in pod "talks" not found' "$(kc logs talks --previous)"
}

pipes() {
    is "what is piped in comes out" "$(sha256sum <"$WORK/random")" "$(fed exec -i main -- cat <"$WORK/random" | sha256sum)"
    is "the end of it is heard" 3000000 "$(fed exec -i main -- wc -c <"$WORK/random")"
}

# It goes on for as long as the container does.
attach() {
    : >"$WORK/attached"
    "$KUBECTL" --context agent-sandbox attach -i keyboard < <(echo hello && sleep 20) >"$WORK/attached" 2>&1 &
    local pid=$!
    PIDS+=("$pid")
    within 20 grep -q got "$WORK/attached"
    kill $pid
    has "attach" "got hello" "$(cat "$WORK/attached")"
}

commands() {
    is "exec" "out err" "$(kc exec main -- sh -c 'echo out; echo err >&2' | sort -r | paste -sd' ')"
    kc exec main -- sh -c 'exit 7' >/dev/null
    is "its exit code" 7 $?
    has "a command that is not there" "no such file" "$(kc exec main -- /no/such)"
    pipes
    has "a terminal" "30 90" "$(at_terminal 'until stty size; do sleep 0.1; done; exit 0\n' exec -it main -- sh)"
    at_terminal 'exit 5\n' "exec -it main -- sh; echo code=\$?" >"$WORK/typed"
    has "the exit code of what was typed" code=5 "$(cat "$WORK/typed")"
    attach
    kc exec main -- rm -rf /tmp/tree >/dev/null
    kc cp "$WORK/tree" main:/tmp/tree >/dev/null
    is "cp into a Pod" "$(sha256sum <"$WORK/random")" "$(kc exec main -- sha256sum /tmp/tree/below/b | sed 's|/.*|-|')"
    rm -rf "$WORK/back"
    kc cp main:/tmp/tree "$WORK/back" >/dev/null
    t "and out of it" diff -r "$WORK/tree" "$WORK/back"
}

# forward: starts kubectl port-forward; sets FORWARD and the two local ports.
forward() {
    : >"$WORK/forward"
    "$KUBECTL" --context agent-sandbox port-forward pod/ports :7 :80 </dev/null >"$WORK/forward" 2>&1 &
    FORWARD=$!
    PIDS+=("$FORWARD")
    within 30 eval '[ "$(grep -c "^Forwarding from 127.0.0.1" "$WORK/forward")" = 2 ]'
    ECHO_PORT=$(sed -n 's/^Forwarding from 127.0.0.1:\([0-9]*\) -> 7$/\1/p' "$WORK/forward")
    WEB_PORT=$(sed -n 's/^Forwarding from 127.0.0.1:\([0-9]*\) -> 80$/\1/p' "$WORK/forward")
}

# echoes: what is sent to the forwarded port comes back whole.
echoes() {
    python3 - "$ECHO_PORT" "$WORK/random" <<'EOF'
import socket, sys, threading
data, got = open(sys.argv[2], "rb").read(), b""
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 30)
threading.Thread(target=s.sendall, args=(data,), daemon=True).start()
while len(got) < len(data):
    piece = s.recv(65536)
    assert piece, f"{len(got)} bytes came back"
    got += piece
assert got == data
EOF
}

ports() {
    fed exec -i ports -- sh -c 'cat >/www/index.html' <"$WORK/random"
    if forward; then ok "port-forward listens"; else not_ok "port-forward listens" "$(cat "$WORK/forward")"; fi
    t "what is sent to a port comes back" echoes
    for _ in 1 2 3 4 5; do curl -s --max-time 30 "http://127.0.0.1:$WEB_PORT/" | sha256sum; done | sort | uniq -c >"$WORK/pages"
    like "one connection after the other" "^ *5 $(sha256sum <"$WORK/random" | cut -d' ' -f1)" "$(cat "$WORK/pages")"
    kill "$FORWARD" && wait "$FORWARD" 2>/dev/null
    has "a port where nobody listens" 'refused' "$(
        "$KUBECTL" --context agent-sandbox port-forward pod/ports :81 </dev/null >"$WORK/forward" 2>&1 &
        pid=$!
        within 30 grep -q '^Forwarding from 127.0.0.1' "$WORK/forward"
        curl -s --max-time 10 "http://127.0.0.1:$(sed -n 's/^Forwarding from 127.0.0.1:\([0-9]*\) -> 81$/\1/p' "$WORK/forward")/"
        within 10 grep -qi refused "$WORK/forward"
        kill $pid 2>/dev/null
        cat "$WORK/forward"
    )"
}

# ---- each kubectl, each protocol ----

export KUBECTL_REMOTE_COMMAND_WEBSOCKETS=true KUBECTL_PORT_FORWARD_WEBSOCKETS=true
for folder in "${KUBECTLS[@]:1}"; do
    KUBECTL=$folder/kubectl
    echo "# $("$KUBECTL" version --client | head -n 1), WebSockets"
    pipes
    ports
done
KUBECTL=${KUBECTLS[0]}/kubectl
echo "# $("$KUBECTL" version --client | head -n 1), WebSockets"
logs
commands
ports
echo "# the same over SPDY"
export KUBECTL_REMOTE_COMMAND_WEBSOCKETS=false KUBECTL_PORT_FORWARD_WEBSOCKETS=false
commands
ports

# ---- following ----

kc logs -f talks >"$WORK/followed" &
FOLLOWER=$!
within 20 grep -q 'line 5' "$WORK/followed"
is "a command makes it go on" "" "$(kc exec talks -- touch /tmp/go)"
wait $FOLLOWER
is "following ends with the container" 0 $?
is "with its last line" end "$(tail -n 1 "$WORK/followed")"
comes "it has ended" talks '.status.phase == "Succeeded"'
has "nobody runs anything in it any more" 'completed pod' "$(kc exec talks -- true)"

# ---- the Python client ----

if [ -x "$PYTHON" ]; then
    is "the Python client's stream and port-forward" "out|err 3 page" "$(timeout 60 "$PYTHON" - <<'EOF' 2>&1
import socket
from kubernetes import client, config
from kubernetes.stream import portforward, stream
config.load_kube_config(context="agent-sandbox")
core = client.CoreV1Api()
s = stream(core.connect_get_namespaced_pod_exec, "main", "default", command=["sh", "-c", "read a; echo $a; echo err >&2; exit 3"],
           stdin=True, stdout=True, stderr=True, tty=False, _preload_content=False)
s.write_stdin("out\n")
s.run_forever(timeout=30)
said = s.read_stdout().strip() + "|" + s.read_stderr().strip()
p = portforward(core.connect_get_namespaced_pod_portforward, "ports", "default", ports="80")
c = p.socket(80)
c.settimeout(30)
c.sendall(b"GET / HTTP/1.0\r\n\r\n")
page = c.recv(15)
print(said, s.returncode, "page" if page.startswith(b"HTTP/1.") else page)
EOF
    )"
else
    skip "the Python client" "its packages are not there (tests/compat/clients make python)"
fi

for name in main talks keyboard ports; do pod_delete $name '?gracePeriodSeconds=0'; done
nothing_left "nothing is left of all that"
