# Three replicas on one store: each binds, each sees what the others wrote, and each says so when it does not know. Then a leader that
# is paused and wakes up too late, and one that dies and is started again.
# shellcheck shell=bash source=tests/scale/lib.sh
. "$(dirname "$0")/lib.sh"
FLAGS=(--request-timeout=3 --leader-elect-lease-duration=3s)

bound() { api POST "$EXTENSIONS/sandboxclaims" "${JSON[@]}" -d "$(claim "$1" p)" && [ "$CODE" = 201 ] && q -e .status.sandbox.name >/dev/null; }

# sees PATH JQ-PROGRAM: this replica's cache shows it.
sees() { api GET "$1?resourceVersion=0" && [ "$CODE" = 200 ] && q -e "$2" >/dev/null; }

leads() { [ "$(leader)" = "$1" ]; }
other_leads() { local now; now=$(leader) && [ "$now" != "$1" ]; }

# settled TEXT CLAIMS: all claims are Ready, and the pool is full.
settled() { t "$1: all claims are Ready" claims_settle "$2" && t "$1: the pool is full" pool_fills p 12; }

etcd_up ''
kube_up
node_up --nodes 1
replicas_up 3
t "M-t004 one of them leads, by the key that every version has" soon leader
FIRST=$(leader)
pool_make p 12
t "the pool fills" pool_fills p 12

# ---- everybody binds ----

for i in 0 1 2; do
    at "$i"
    t "replica $i binds in the POST$([ "$i" = "$FIRST" ] && echo ", as leader")" bound "claim-$i"
    REVISION=$(q .metadata.resourceVersion)
    for j in 0 1 2; do
        at $j
        api GET "$EXTENSIONS/sandboxclaims/claim-$i"
        is "replica $j shows it as replica $i stored it" "200 claim-$i" "$CODE $(q .metadata.name)"
        t "and its cache has it" soon sees "$EXTENSIONS/sandboxclaims" "(.metadata.resourceVersion | tonumber) >= $REVISION"
    done
done
is "three claims, three Sandboxes" 3 "$(api GET "$EXTENSIONS/sandboxclaims" && q '[.items[].status.sandbox.name] | unique | length')"
at 0
settled "after that" 3

# ---- a follower whose store is away ----

etcd_kill
for i in 0 1 2; do
    at $i
    for path in "$EXTENSIONS/sandboxclaims" "$EXTENSIONS/sandboxclaims/claim-0" "$EXTENSIONS/sandboxclaims/never"; do
        api GET "$path?timeout=2s"
        like "replica $i without etcd does not know ${path##*/}" '^50[034] Status$' "$CODE $(q .kind)"
    done
    answers "replica $i without etcd: what any version may be is served" 200 GET "$EXTENSIONS/sandboxclaims/claim-0?resourceVersion=0"
    api POST "$EXTENSIONS/sandboxclaims?timeout=2s" "${JSON[@]}" -d "$(claim away p)"
    like "replica $i without etcd stores nothing" '^50[034] Status$' "$CODE $(q .kind)"
    answers "replica $i without etcd lives" 200 GET /livez
    answers "replica $i without etcd is not ready" 500 GET /readyz
done
etcd_up ''
for i in 0 1 2; do at $i && t "replica $i is ready again by itself" soon is_ready; done
t "somebody leads again" soon leader
t "and claims are bound again" soon bound after-outage
api GET "$EXTENSIONS/sandboxclaims/away"
COUNT=$((4 + (CODE == 200))) # its outcome was not known
settled "after the outage" $COUNT

# ---- a leader that sleeps ----

FIRST=$(leader)
kill -STOP "${REPLICA_PIDS[$FIRST]}"
t "while the leader is paused another one takes over" soon other_leads "$FIRST"
at $(((FIRST + 1) % 3))
t "claims are bound meanwhile" bound during-pause
settled "while the first leader sleeps" $((COUNT + 1))
kill -CONT "${REPLICA_PIDS[$FIRST]}"
at "$FIRST"
t "it wakes up, finds that it leads no more, and serves" soon bound after-pause
like "and has said so" 'not leading any more' "$(cat "$WORK"/server-$((FIRST + 1)).log)"
settled "after the pause" $((COUNT + 2))

# ---- a leader that dies ----

FIRST=$(leader)
replica_end "$FIRST" KILL
BEGIN=$(now_ms)
replica_start "$FIRST"
at "$FIRST"
t "killed and started again it leads again, or another one does" soon bound after-kill
settled "after the kill" $((COUNT + 3))
echo "# all settled $(($(now_ms) - BEGIN)) ms after the kill"
kill -TERM "${REPLICA_PIDS[$FIRST]}"
t "the leader that is stopped hands over" soon other_leads "$FIRST"
wait "${REPLICA_PIDS[$FIRST]}"
is "and ends with exit code 0" 0 $?
replica_start "$FIRST"
REPORT=$("$SCALE/history" -e "$ETCD_URL") || not_ok "the history is sound" "$REPORT"
has "one Sandbox per claim, through all of it" "claims=$((COUNT + 3)) " "$REPORT"
has "and nothing was wrong" "wrong=0" "$REPORT"
