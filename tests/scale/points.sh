# The server dies at each numbered point of apiserver/base/crash.h, in the middle of a claim, a refill, a suspension, an expiry, a
# deletion; the process that is started in its place brings what was begun to its end, and nothing is there twice. Needs a build with
# crash points (make CRASH=1 all).
# shellcheck shell=bash source=tests/scale/lib.sh
SERVER=${CRASH_SERVER:-$(dirname "$0")/../../build/gcc-crash/sandbox-apiserver}
[ -x "$SERVER" ] || { printf '1..1\nok 1 - %s # skip no build with crash points here (make CRASH=1 all)\n' "$0" && exit 0; }
. "$(dirname "$0")/lib.sh"
HEADER=$ROOT/apiserver/base/crash.h
POOL=3

# ---- what is done, and what has to come of it ----
# begin_X NAME runs while the server may die at any moment; end_X NAME tells whether all is as it must be, and is asked again and again.

post_claim() { api POST "$EXTENSIONS/sandboxclaims" "${JSON[@]}" -d "$1"; }
in_time() { date -u -d "+$1 seconds" +%Y-%m-%dT%H:%M:%SZ; }
patch() { api PATCH "$1" -H 'Content-Type: application/merge-patch+json' -d "$2"; }
claim_is() { api GET "$EXTENSIONS/sandboxclaims/$1" && [ "$CODE" = 200 ] && q -e "$2" >/dev/null; }
sandbox_is() { api GET "$SANDBOXES/$1" && [ "$CODE" = 200 ] && q -e "$2" >/dev/null; }
is_gone() { api GET "$1" && [ "$CODE" = 404 ]; }
has_no_pod() { ! kube GET "/api/v1/namespaces/default/pods/$1" >/dev/null; }
READY='any(.status.conditions[]?; .type == "Ready" and .status == "True")'

# A client whose answer was lost asks again: it is stored already, or is now.
asked_again() {
    post_claim "$1"
    [ "$CODE" = 201 ] || [ "$CODE" = 409 ]
}

begin_warm() { post_claim "$(claim "$1" warm)"; }
end_warm() { asked_again "$(claim "$1" warm)" && claim_is "$1" "$READY"' and .status.sandbox.name != .metadata.name' && pool_is warm $POOL; }

# The member gets its address when the claim is there: the reconciler binds. A claim waits for that a short while only (C13), on a busy
# machine too short a one: then it is for the next.
begin_late() {
    for LATE in "$1"-{1..20}; do
        kill -STOP "$NODE_PID"
        pool_make "$LATE" 1
        soon one_member "$LATE"
        post_claim "$(claim "$LATE" "$LATE")"
        kill -CONT "$NODE_PID"
        soon late_is_over
        ! is_dead || return
    done
}
late_is_over() { is_dead || claim_is "$LATE" .status.sandbox.name; }
one_member() { api GET "$SANDBOXES?resourceVersion=0" && q -e --arg p "$1" 'any(.items[]; .metadata.name | startswith($p + "-"))' >/dev/null; }
end_late() { claim_is "$LATE" "$READY"' and .status.sandbox.name != .metadata.name' && pool_is "$LATE" 1; }

begin_cold() { post_claim "$(claim "$1" none)"; }
end_cold() { asked_again "$(claim "$1" none)" && claim_is "$1" "$READY"' and .status.sandbox.name == .metadata.name'; }

# The pool is seen at once, so who made it may miss the answer.
begin_grow() { (pool_make "$1" 4) >/dev/null || :; }
end_grow() { pool_is "$1" 4; }

before_shrink() { pool_make "$1" 4 && soon pool_is "$1" 4; }
begin_shrink() { patch "$EXTENSIONS/sandboxwarmpools/$1" '{"spec":{"replicas":1}}'; }
end_shrink() { begin_shrink "$1" && pool_is "$1" 1; }

before_suspend() { made "$SANDBOXES" "$(sandbox "$1")" && soon sandbox_is "$1" "$READY"; }
begin_suspend() { patch "$SANDBOXES/$1" '{"spec":{"operatingMode":"Suspended"}}'; }
end_suspend() { begin_suspend "$1" && sandbox_is "$1" 'any(.status.conditions[]?; .type == "Suspended" and .status == "True")' && has_no_pod "$1"; }

# What ends at a time is there before that comes.
ends() { jq -cn --arg at "$(in_time 1)" --arg policy "$1" '{shutdownTime: $at, shutdownPolicy: $policy}'; }
claim_ends() { patch "$EXTENSIONS/sandboxclaims/$1" "{\"spec\":{\"lifecycle\":$(ends "$2")}}"; }
before_retain() { begin_cold "$1" && soon end_cold "$1"; }
begin_retain() { claim_ends "$1" Retain; }
end_retain() { claim_is "$1" 'any(.status.conditions[]?; .reason == "ClaimExpired")' && is_gone "$SANDBOXES/$1"; }
before_expire() { before_retain "$1"; }
begin_expire() { claim_ends "$1" Delete; }
end_expire() { is_gone "$EXTENSIONS/sandboxclaims/$1"; }
before_shutdown() { before_suspend "$1"; }
begin_shutdown() { patch "$SANDBOXES/$1" "{\"spec\":$(ends Delete)}"; }
end_shutdown() { is_gone "$SANDBOXES/$1" && has_no_pod "$1"; }

before_delete() { before_retain "$1"; }
begin_delete() { api DELETE "$EXTENSIONS/sandboxclaims/$1"; }
end_delete() { begin_delete "$1" && is_gone "$EXTENSIONS/sandboxclaims/$1"; }

# Each point, in what it is met.
TABLE='
claim-chosen warm
claim-stored warm
bind-chosen late
bind-stored late
cold-decided cold
cold-made cold
claim-status-decided cold
claim-status-written cold
member-decided warm
member-made warm
member-decided grow
member-made grow
member-deleted shrink
child-decided warm
child-written warm
child-decided cold
child-written cold
child-removal-decided suspend
child-removed suspend
child-removal-decided shutdown
child-removed shutdown
sandbox-status-decided warm
sandbox-status-written warm
sandbox-status-decided cold
sandbox-status-written cold
sandbox-status-decided suspend
sandbox-status-written shutdown
claim-end-decided expire
claim-ended expire
sandbox-end-decided retain
sandbox-ended retain
sandbox-end-decided shutdown
sandbox-ended shutdown
delete-stored delete
'

is_dead() { ! kill -0 "${REPLICA_PIDS[0]}" 2>/dev/null; }

# A request may be under way as the server dies: its client is told nothing, and that is no failure of the test.
alive() { :; }

# die_at NUMBER POINT OPERATION
die_at() {
    local name=$3-$1 text="$2 in $3"
    if declare -F "before_$3" >/dev/null; then "before_$3" "$name" || not_ok "$text: what it needs is there" "$BODY"; fi
    replica_end 0 TERM
    AGENT_SANDBOX_CRASH_POINT=$2 replica_start 0
    at 0
    soon is_ready
    "begin_$3" "$name"
    if soon is_dead; then
        replica_end 0 KILL
    else
        not_ok "$text: the server dies there" "$(tail -n 5 "$SERVER_LOG")"
        replica_end 0 TERM
    fi
    replica_start 0
    soon is_ready
    if soon "end_$3" "$name"; then ok "$text: the next process finishes it"; else not_ok "$text: the next process finishes it" "$CODE $BODY"$'\n'"$(tail -n 5 "$SERVER_LOG")"; fi
}

# each_has_its_pod: every Sandbox that is neither suspended nor at its end has one Pod.
each_has_its_pod() {
    local sandboxes pods twice missing
    api GET "$SANDBOXES"
    sandboxes=$(q -r '.items[] | select(.spec.operatingMode != "Suspended") | .metadata.uid' | sort)
    pods=$(kube GET /api/v1/namespaces/default/pods | jq -r '.items[].metadata.ownerReferences[0].uid' | sort)
    twice=$(uniq -d <<<"$pods")
    missing=$(comm -23 <(echo "$sandboxes") <(uniq <<<"$pods"))
    PODS="twice: ${twice:-none}; missing: ${missing:-none}"
    [ -z "$twice$missing" ]
}

is "every point of the header is in the table" "$(sed -n 's/.*ROW([0-9]*, [A-Z_]*, "\([a-z-]*\)").*/\1/p' "$HEADER" | sort -u)" \
    "$(awk 'NF { print $1 }' <<<"$TABLE" | sort -u)"
etcd_up ''
kube_up
node_up --nodes 2
replicas_up 1 --leader-elect-lease-duration=5s
pool_make none 0
pool_make warm $POOL
t "a pool fills" soon pool_is warm $POOL
COUNT=0
while read -r POINT OPERATION; do
    [ -n "$POINT" ] || continue
    COUNT=$((COUNT + 1))
    die_at $COUNT "$POINT" "$OPERATION"
done <<<"$TABLE"
soon each_has_its_pod
is "every Sandbox has its Pod, none has two" "twice: none; missing: none" "$PODS"
REPORT=$("$SCALE/history" -k -e "$ETCD_URL") || not_ok "the history is sound" "$REPORT"
grep '^#' <<<"$REPORT"
has "no claim has lost its Sandbox, no Sandbox has two" "wrong=0" "$REPORT"
