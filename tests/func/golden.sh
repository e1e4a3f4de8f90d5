# The answers recorded from a real kube-apiserver (../shared/data/golden), asked along three roads: of a server without a cluster (alone);
# of one that has a real kube-apiserver for its namespaces and reviews (straight); and of that kube-apiserver, which asks ours as it does any
# aggregated server (aggregated). Exactly what golden.list names for a road may differ on it, each with its reason.
# shellcheck shell=bash source=tests/func/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/lib/kube.sh
. "$ROOT/tests/lib/kube.sh"
SHARED=$(cd "$ROOT/../shared" 2>/dev/null && pwd) || { skip golden "no recordings here" && exit 0; }
REPLAY=$SHARED/tools/replay/replay.py
[ -e "$REPLAY" ] || { skip golden "no recordings here" && exit 0; }
LIST=$ROOT/tests/func/golden.list
need python3

# differing LISTED REPORT: the exchanges that differ, and those listed paths ($.headers.Vary) that differ in any; where nothing but such a path
# differs, the exchange does not.
differing() {
    awk 'NR == FNR { listed[$1]; next }
        /^FAILED/ { name = $2 }
        /^ +\$/ { path = substr($1, 1, length($1) - 1); print (path in listed) ? path : name }' "$1" "$2"
}

# replay ROAD [ARGUMENT-OF-THE-TOOL...]: all scenarios on $URL, some side by side, for they wait more than they work, watches most of all.
# In the end those that write to a namespace that nobody made: where no cluster forbids it, others would find that.
replay() {
    local out=$WORK/replayed-$1 topics others
    shift
    mkdir "$out"
    others=$(find "$SHARED/data/golden" -name '*.json' ! -name '*.rec.json' -printf '%f\n' | sed 's/\.json$//' | grep -vxE 'watch|apply|namespace' | sort)
    for topics in "watch $others" "apply namespace"; do
        # shellcheck disable=SC2016,SC2086 # the topics are many words, the rest is for the other shell
        printf '%s\n' $topics | OUT=$out xargs -P 4 -I TOPIC sh -c 'topic=$1 && shift && "$@" "$topic" >"$OUT/$(basename "$topic")" 2>&1 || :' - \
            "$SHARED/data/golden/TOPIC.json" python3 "$REPLAY" check --server "$URL" --ca "$WORK/serving-ca.crt" --cert "$WORK/admin.crt" --key "$WORK/admin.key" "$@"
    done
    cat "$out"/*.json >"$out/all"
}

# judge ROAD: what came of it.
judge() {
    local road=$1 out=$WORK/replayed-$1 passed
    awk -v road="$road" '/^[$a-z]/ && ($2 == road || $2 == "all") { print $1 }' "$LIST" | sort >"$out/listed"
    differing "$out/listed" "$out/all" | grep -vxFf <(awk '$2 == "maybe" { print $1 }' "$LIST") | sort -u >"$out/differ"
    passed=$(awk '/ passed, / { n += $1 + $3 } END { print n + 0 }' "$out/all")
    passed=$((passed - $(grep -c '^[a-z]' "$out/differ")))
    echo "# $road: $passed answers as recorded"
    if [ "$passed" -gt 1000 ]; then ok "$road: most of the recorded exchanges are answered alike"; else not_ok "$road: most of the recorded exchanges are answered alike" "$passed passed"; fi
    is "$road: nothing differs that is not listed" "" "$(comm -23 "$out/differ" "$out/listed")"
    is "$road: nothing is listed that does not differ" "" "$(comm -13 "$out/differ" "$out/listed")"
}

etcd_up
server_up
replay alone --no-namespaces
judge alone
server_stop
is "the server ends with exit code 0" 0 $?

if [ -n "$SLOW" ]; then
    : # what a sanitizer can see here it has seen
elif kube_is_built; then
    etcd_stop "$ETCD_DIR"
    rm -rf "$ETCD_DIR/data" # what the road before has left in namespaces that nobody made
    etcd_up
    kube_up
    server_up --reconcile=false
    kube_aggregates
    replay straight --cluster-server "$KUBE_URL" &
    URL=$KUBE_URL replay aggregated
    wait $!
    judge straight
    judge aggregated
    server_stop
    is "the server ends with exit code 0" 0 $?
    kube_down
else
    skip "the recorded exchanges with a kube-apiserver" "$NO_KUBE"
fi
