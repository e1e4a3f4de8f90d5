# The answers recorded from a real kube-apiserver (../shared/data/golden), asked of a server without a cluster: exactly what golden.list
# names may differ, each with its reason.
# shellcheck shell=bash source=tests/func/lib.sh
. "$(dirname "$0")/lib.sh"
SHARED=$(cd "$ROOT/../shared" 2>/dev/null && pwd) || { skip golden "no recordings here" && exit 0; }
REPLAY=$SHARED/tools/replay/replay.py
[ -e "$REPLAY" ] || { skip golden "no recordings here" && exit 0; }
need python3
etcd_up
server_up
REPLAYS=()
# The scenarios wait more than they work, so they run side by side.
replay() {
    python3 "$REPLAY" check --server "$URL" --ca "$WORK/serving-ca.crt" --cert "$WORK/admin.crt" --key "$WORK/admin.key" --no-namespaces "$1" \
        >"$WORK/$(basename "$1").replayed" 2>&1
}
for scenario in "$SHARED"/data/golden/*.json; do
    case $scenario in *.rec.json) continue ;; esac
    replay "$scenario" &
    REPLAYS+=($!)
done
wait "${REPLAYS[@]}"
cat "$WORK"/*.replayed >"$WORK/replayed"
passed=$(awk '/ passed, / { n += $1 } END { print n + 0 }' "$WORK/replayed")
if [ "$passed" -gt 1000 ]; then ok "most of the recorded exchanges are answered alike"; else not_ok "most of the recorded exchanges are answered alike" "$passed passed"; fi
echo "# $passed answers as recorded"
sed -n 's/^FAILED *\([^ ]*\).*/\1/p' "$WORK/replayed" | sort >"$WORK/differ"
sed -n 's/^\([a-z][^ ]*\) .*/\1/p' "$ROOT/tests/func/golden.list" | sort >"$WORK/listed"
is "nothing differs that is not listed" "" "$(comm -23 "$WORK/differ" "$WORK/listed")"
is "nothing is listed that does not differ" "" "$(comm -13 "$WORK/differ" "$WORK/listed")"
